"""The script that gateways meet in executes the Python specification (`learned.Record.met`)."""

import asyncio
from dataclasses import fields
from typing import Any
from uuid import uuid4

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings
from memory_pool_ceilings import first_met

from gateway.adapters.pool_ceilings import RedisPoolCeilings
from gateway.adapters.redis import connect_redis
from gateway.domain.queue.learned import Learned, Record
from gateway.domain.queue.samples import Samples
from gateway.serving.queue_ceilings_ports import Met

POOL = "org/{m}:*"
WORKERS = ("w1", "w10", "http://[::1]:80/{ö}")
NOW_MS = 1_800_000_000_000
SIZES = st.integers(1, 2**40)
TIMES = st.integers(0, 2**50)
COUNTS = st.integers(0, 10**9)
KNOWN = {
    "since_ms": TIMES, "sequences": SIZES, "batch": SIZES, "alone": SIZES, "high": SIZES,
    "is_alone": st.booleans(), "is_falling": st.booleans(), "drains_ms": TIMES,
}  # fmt: skip
SEEN = {field.name: COUNTS for field in fields(Samples) if field.name != "epoch"}


@st.composite
def brought(draw: st.DrawFn) -> Record:
    """What a gateway may bring: samples of what it knows, or of before."""
    epoch = draw(st.integers(1, 4))
    of = draw(st.integers(max(1, epoch - 2), epoch))
    known: dict[str, Any] = {name: draw(each) for name, each in KNOWN.items()}
    learned = Learned(epoch=epoch, **known)
    return Record(learned, Samples(of, **{name: draw(each) for name, each in SEEN.items()}))


MEETINGS = st.lists(
    st.dictionaries(st.sampled_from(WORKERS), brought(), min_size=1), min_size=1, max_size=8
)


def specified(meetings: list[dict[str, Record]]) -> list[Met]:
    """What the specification makes of them."""
    records: dict[str, Record] = {}
    found = []
    for meeting in meetings:
        taken = {
            worker
            for worker, each in meeting.items()
            if worker not in records or records[worker].yields_to(each)
        }
        for worker, each in meeting.items():
            kept = records.get(worker)
            records[worker] = first_met(each) if kept is None else kept.met(each)
        shown = {worker: records[worker] for worker in meeting}
        found.append(Met(NOW_MS, shown, frozenset(taken)))
    return found


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(meetings=MEETINGS)
def test_lua_executes_the_meeting_of_gateways(
    redis_url: str, meetings: list[dict[str, Record]]
) -> None:
    """Any order of what is brought: the same records, and the same word of what was new."""

    async def run() -> list[Met]:
        client = connect_redis(redis_url, timeout_ms=5_000)
        store = RedisPoolCeilings(client, timeout_ms=5_000, clock_ms=lambda: NOW_MS)
        pool = f"{POOL}{uuid4().hex}"
        try:
            return [await store.meet(pool, meeting) for meeting in meetings]
        finally:
            await client.aclose()

    assert asyncio.run(run()) == specified(meetings)
