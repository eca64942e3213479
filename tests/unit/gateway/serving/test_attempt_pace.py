"""Where the pace of a worker's streams is seen: once each stretch, and at every end."""

from functools import partial

import engine_events as events
import memory_gateway
import pytest
from memory_gateway import MemoryGateway
from scripted_engine import Step

from billing.domain.usage_record import Outcome
from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import Worker
from gateway.errors import WorkerFailed, WorkerUnreachable
from gateway.serving.attempt import Upstream
from gateway.serving.queue.pace import Pace, StreamPace

TOKEN_MS = 500
Counts = list[tuple[int, int]]


class Paces:
    """The paces of all streams that were opened, and what they told: (ms, tokens) of each
    stretch."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, Band]] = []
        self.stretches: Counts = []
        self.stays: list[int | None] = []

    def pace(self, worker: Worker, band: Band) -> Pace:
        self.opened.append((worker.id, band))
        return StreamPace(
            opened_us=0, stretch_ms=1_000, on_stretch=self._stretch, on_end=self.stays.append
        )

    def _stretch(self, began_us: int, ended_us: int, tokens: int) -> None:
        self.stretches.append(((ended_us - began_us) // 1000, tokens))


@pytest.fixture
def paces(monkeypatch: pytest.MonkeyPatch) -> Paces:
    """Of every gateway that a test makes."""
    made = Paces()
    monkeypatch.setattr(memory_gateway, "Upstream", partial(Upstream, pace=made.pace))
    return made


def slowly(gateway: MemoryGateway, tokens: int, *, says: bool = True) -> list[Step]:
    """An answer whose tokens come `TOKEN_MS` apart; `says`: each with the count so far."""
    steps: list[Step] = [events.role()]
    for number in range(1, tokens + 1):
        steps.append(lambda: gateway.clock.advance(TOKEN_MS))
        steps.append(events.content("x ", usage=events.counts(5, number) if says else None))
    return [*steps, events.finish(), events.usage(5, tokens)]


async def test_a_stretch_ends_with_the_token_that_is_due_and_the_last_with_the_answer(
    paces: Paces,
) -> None:
    gateway = MemoryGateway()
    gateway.engine.scripts = [slowly(gateway, 6)]
    await gateway.post(max_tokens=6)
    gateway.assert_one_of_each(Outcome.COMPLETED)
    assert paces.opened == [("w0", Band.INTERACTIVE)]
    assert paces.stretches == [(1_000, 2), (1_000, 2), (500, 1)]
    assert len(paces.stays) == 1


async def test_counts_that_come_only_at_the_end_are_one_stretch(paces: Paces) -> None:
    gateway = MemoryGateway()
    gateway.engine.scripts = [slowly(gateway, 6, says=False)]
    await gateway.post(max_tokens=6)
    assert paces.stretches == [(2_500, 5)]


async def test_each_choice_is_seen(paces: Paces) -> None:
    gateway = MemoryGateway()
    gateway.engine.scripts = [slowly(gateway, 2), slowly(gateway, 2)]
    await gateway.post(n=2, max_tokens=2)
    assert len(paces.opened) == len(paces.stays) == 2


async def test_a_stream_that_fails_is_over_too(paces: Paces) -> None:
    """One that told nothing, and one that broke after its first token."""
    gateway = MemoryGateway(workers=2)
    gateway.engine.scripts = [
        [WorkerUnreachable("x")],
        [*slowly(gateway, 2)[:-2], WorkerFailed("broke")],
    ]
    await gateway.post(max_tokens=4)
    gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert [each[0] for each in paces.opened] == ["w0", "w1"]
    assert paces.stays[0] is None
    assert paces.stays[1] is not None
    assert paces.stretches == [(500, 1)]


async def test_batch_is_seen_as_batch(paces: Paces) -> None:
    gateway = MemoryGateway()
    gateway.engine.scripts = [slowly(gateway, 1)]
    await gateway.serve(gateway.a_client(), headers={b"x-weir-class": b"batch"})
    assert paces.opened == [("w0", Band.BATCH)]
