"""Which request shows which fault."""

import asyncio

from backend.sglang_http.faults import Fault, FaultPlan


def test_counted_and_ordered() -> None:
    """Faults are used up in the order in which they were armed."""
    plan = FaultPlan()
    plan.add(Fault(kind="stall", count=2))
    plan.add(Fault(kind="die"))
    taken = [plan.take("r") for _ in range(4)]
    assert [fault.kind if fault else None for fault in taken] == ["stall", "stall", "die", None]


def test_by_rid_and_without_end() -> None:
    """A fault may wait for certain rids, and may last until it is cleared."""
    plan = FaultPlan()
    plan.add(Fault(kind="stall", count=None, rid_prefix="a"))
    assert plan.take("b") is None
    assert all(plan.take("a1") for _ in range(3))
    assert [fault.kind for fault in plan.armed()] == ["stall"]
    plan.clear()
    assert plan.take("a1") is None


async def test_stale_load() -> None:
    """It is listed while it holds, and one armed later holds in its place."""
    plan, kept = FaultPlan(), []
    plan.on_stale = lambda: kept.append(plan.stale)
    first, second = (Fault(kind="stale_load", delay_ms=delay) for delay in (600_000, 20))
    plan.add(first)
    assert plan.armed() == [first]
    plan.add(second)
    assert kept == [first, second]
    async with asyncio.timeout(20):
        while plan.armed():
            assert plan.armed() in ([second], [])
            await asyncio.sleep(0.005)
    assert plan.stale is None
    plan.add(first)
    plan.clear()
    assert plan.armed() == []


def test_slowness_has_bounds() -> None:
    """However many are armed, a step ends."""
    plan = FaultPlan()
    for factor, slowness in ((1000.0, 1000.0), (1000.0, 1000.0), (0.5, 1000.0)):
        plan.add(Fault(kind="slow", scope="replica", factor=factor))
        assert plan.slowness == slowness
    plan.clear()
    assert plan.slowness == 1.0
    for _ in range(200):
        plan.add(Fault(kind="slow", scope="replica", factor=0.001))
    assert plan.slowness == 0.001
