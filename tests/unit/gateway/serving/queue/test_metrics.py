"""What is counted of waiting."""

import asyncio

import pytest
from memory_leases import counted
from memory_pool_queue import MemoryStore
from prometheus_client.metrics import MetricWrapperBase
from virtual_time import virtually
from waiting_rooms import Slots, WaitingRoom, asked, batch, settle

from gateway.errors import WeirError
from gateway.telemetry import queue as metrics


def waiting(band: str) -> tuple[float, float, float]:
    return (
        counted("weir_queue_waiting_requests", request_class=band),
        counted("weir_queue_waiting_tokens", request_class=band),
        counted("weir_queue_parked_requests", request_class=band),
    )


@virtually
async def test_who_waits_is_counted_in_requests_and_tokens_and_then_no_more() -> None:
    store = MemoryStore()
    store.room("w", 1)
    before = waiting("interactive"), waiting("batch")
    async with WaitingRoom(store).open() as room:
        held = await room.place("x")
        held.began()
        waits = [room.place("a"), room.place("b", need_tokens=900), room.batch("c")]
        parked = room.start(room.places.admit(asked("p", tenant="t"), Slots(0)))
        await asyncio.sleep(0.1)
        assert waiting("batch")[:2] == (before[1][0] + 1, before[1][1] + 100)
        assert waiting("interactive")[:2] == (before[0][0] + 3, before[0][1] + 1_100)
        await held.end(150)
        for task in waits:
            await (await task).end(150)
        await asyncio.sleep(0.1)
        assert waiting("interactive")[2] == before[0][2] + 1
        parked.cancel()
        await settle()
    assert (waiting("interactive"), waiting("batch")) == before


@virtually
async def test_grants_and_waits_by_what_told_of_them() -> None:
    store = MemoryStore()
    store.room("w", 1)

    def grants(told_by: str) -> float:
        labels = {"request_class": "batch", "told_by": told_by}
        return counted("weir_queue_grants_total", **labels)

    before = {name: grants(name) for name in ("reply", "message", "renewal")}
    waits = counted("weir_queue_wait_seconds_sum", request_class="batch")
    async with WaitingRoom(store).open() as room:
        held = await room.batch("a")
        second, third = room.batch("b"), room.batch("c", wait_ms=700_000)
        await asyncio.sleep(2)
        await held.end(150)
        held = await second
        store.loses_message = lambda message: True
        await held.end(150)
        await (await third).end(150)
    after = {name: grants(name) for name in before}
    assert {name: after[name] - before[name] for name in before} == dict.fromkeys(before, 1)
    waited = counted("weir_queue_wait_seconds_sum", request_class="batch") - waits
    assert 4 < waited <= 4.6


@virtually
async def test_refusals_by_reason() -> None:
    def refused(reason: str) -> float:
        labels = {"request_class": "batch", "reason": reason}
        return counted("weir_queue_refusals_total", **labels)

    reasons = ("queue_full", "wait_over", "no_place", "limit", "shutting_down", "cancelled")
    before = {reason: refused(reason) for reason in reasons}
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        with pytest.raises(WeirError):
            await room.places.admit(batch("l", max_queued=0), Slots(0))
        await settle()
        held = await room.batch("x")
        held.began()
        with pytest.raises(WeirError):
            await room.batch("a", wait_ms=500)
        waits = room.batch("b", max_queued=1)
        await settle()
        for request_id, most in (("c", 1), ("d", 0)):
            with pytest.raises(WeirError):
                await room.batch(request_id, max_queued=most)
        waits.cancel()
        await settle()
        room.places.stop_all()
        with pytest.raises(WeirError):
            await room.batch("e")
        await held.end(150)
    assert {reason: refused(reason) - before[reason] for reason in reasons} == dict.fromkeys(
        reasons, 1
    )


@virtually
async def test_take_backs_that_were_kept_and_given_back() -> None:
    def results() -> tuple[float, float]:
        return tuple(  # type: ignore[return-value]
            counted("weir_queue_taken_back_total", result=each) for each in ("kept", "given_back")
        )

    kept, given_back = results()
    store = MemoryStore()
    store.room("w", 1)
    async with WaitingRoom(store).open() as room:
        for began in (True, False):
            held = await room.batch(f"b{began}")
            interactive = room.place(f"a{began}")
            await held.taken_back.wait()
            if began:
                held.began()
                await held.end(150)
            else:
                held.surrender()
                again = room.start(held.wait_again())
            await (await interactive).end(150)
        await again
        await held.end(150)
    assert results() == (kept + 1, given_back + 1)
    assert store.is_at_rest


def test_the_names_say_what_they_count_and_in_what_unit() -> None:
    own = [each for each in vars(metrics).values() if isinstance(each, MetricWrapperBase)]
    assert len(own) == 8
    for metric in own:
        for family in metric.collect():
            assert family.name.startswith("weir_queue_")
            assert len(family.documentation) > 20
