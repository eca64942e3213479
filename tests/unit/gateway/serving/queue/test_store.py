"""When who waits is told that the store of the queues is away."""

import asyncio
from typing import Any, cast

import pytest
from virtual_time import virtually

from gateway.serving.queue.book import Book
from gateway.serving.queue.store import QueueStore
from gateway.serving.queue_ports import PoolQueue
from gateway.serving.store_watch import MOMENT_S, StoreState


class Watch:
    """In this state."""

    def __init__(self, state: StoreState) -> None:
        self.state = state

    @property
    def is_open(self) -> bool:
        return self.state in (StoreState.OPEN, StoreState.SUSPECT)

    async def lives(self) -> bool:
        return False

    async def ask(self, call: object) -> Any:
        raise NotImplementedError


class Told(Book):
    """Whether those that wait were told."""

    told = False

    def stop_interactive(self, error: object) -> None:
        self.told = True


def lost_store(state: StoreState = StoreState.AWAY) -> tuple[QueueStore, Told]:
    book = Told()
    store = QueueStore(cast("PoolQueue", None), Watch(state), book)
    store.lost()
    assert not book.told
    return store, book


@virtually
async def test_after_a_moment_who_waits_is_told() -> None:
    store, book = lost_store()
    for _ in range(round(MOMENT_S / 0.1)):
        assert not book.told
        await asyncio.sleep(0.1)
        store.lost()
    assert book.told


@virtually
@pytest.mark.parametrize("held_up_s", [0.6, 5])
async def test_what_this_process_was_held_up_is_no_moment(held_up_s: float) -> None:
    """Nobody looked meanwhile whether it answers."""
    store, book = lost_store()
    await asyncio.sleep(held_up_s)
    store.lost()
    await asyncio.sleep(0.1)
    store.lost()
    assert not book.told


@virtually
async def test_while_it_is_told_what_it_must_know_nobody_is_sent_away() -> None:
    """It answers again."""
    store, book = lost_store(StoreState.RETURNING)
    for _ in range(50):
        await asyncio.sleep(0.1)
        store.lost()
    assert not book.told
