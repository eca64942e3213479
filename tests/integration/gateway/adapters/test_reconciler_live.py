"""REC-2 and gateways that are not there for a while: paused, cut off, or just killed."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from reaping import Graves, a_gateway, graves
from sqlalchemy import text
from tenant_examples import a_key, a_tenant
from usage_examples import a_record, an_admission

from billing.domain.reconciliation.findings import Check, Verdict
from billing.postgres.dead_letters import DeadLetter, bury
from billing.postgres.journal_watermarks import Watermark, advance_watermark
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from billing.postgres.usage_late import keep_late
from gateway.adapters.births import Births, history_in
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.reconciler import Period, Reconciler, Scope
from gateway.adapters.reconciler_live import PRESENT_MS, LiveStores, Look
from gateway.domain.admission import Demand, Granted
from gateway.domain.lease import Admitted
from gateway.domain.presence import GONE_MS, Heartbeat
from gateway.domain.scopes import scopes_of


@pytest.fixture
async def system(database_url: str, redis_url: str) -> AsyncIterator[Graves]:
    """Empty stores of this test's own."""
    async with graves(database_url, redis_url) as made:
        yield made


async def leased(system: Graves, *requests: Admitted) -> None:
    """They hold leases of their tenant."""
    ledger = RedisLedger(system.redis, ttl_ms=60_000, timeout_ms=1_000)
    scopes = scopes_of(a_tenant(), a_key(), "smollm2-135m")
    for request in requests:
        demand = Demand(request.request_id.hex, 1, 112, 112)
        decision = await ledger.acquire("acme", a_key().id, "smollm2-135m", demand, scopes)
        assert isinstance(decision, Granted)
    await ledger.mark_active(["acme"], now_ms=time.time_ns() // 1_000_000)


def live(system: Graves) -> LiveStores:
    """Looks twice at once."""
    return LiveStores(system.redis, Births(system.redis, history_in(system.engine)), again_s=0.0)


async def checked(
    system: Graves, *, stores: LiveStores | None = None, gone_after_ms: int = GONE_MS
) -> Verdict:
    """REC-2."""
    until = datetime.now(UTC)
    scope = Scope(Period(until - timedelta(hours=1), until))
    reconciler = Reconciler(system.engine, stores or live(system), gone_after_ms=gone_after_ms)
    (verdict,) = [each for each in await reconciler.run(scope) if each.check == Check.REQUESTS]
    assert verdict.not_applicable is None
    return verdict


async def named(system: Graves, *, stores: LiveStores | None = None) -> set[UUID | None]:
    """Requests of REC-2's findings."""
    return {finding.request_id for finding in (await checked(system, stores=stores)).findings}


async def sizes(system: Graves, *, gone_after_ms: int = GONE_MS) -> list[int]:
    """Sizes of REC-2's findings."""
    verdict = await checked(system, gone_after_ms=gone_after_ms)
    return [finding.size for finding in verdict.findings]


async def shipped(system: Graves, gateway_id: str, *, admitted: int, ended: int) -> None:
    """So much of its journal's first boot is in Postgres."""
    after = Watermark(seq=admitted + ended, admitted_count=admitted, ended_count=ended)
    async with system.engine.begin() as db:
        assert await advance_watermark(db, gateway_id, 1, before=Watermark(), after=after)


async def seen(system: Graves, gateway_id: str, ago_s: int) -> None:
    """It was seen so long ago, and Postgres and Redis were told so."""
    await system.last_seen(gateway_id, ago_s * 1000, Heartbeat(1, 0, 0, 0))
    async with system.engine.begin() as db:
        await db.execute(
            text(
                "INSERT INTO gateway_seen"
                " (gateway_id, boot, durable_seq, shipped_seq, open_count, seen_at)"
                " VALUES (:id, 1, 0, 0, 0, now() - CAST(:ago AS interval))"
            ),
            {"id": gateway_id, "ago": timedelta(seconds=ago_s)},
        )


class BackSoon(LiveStores):
    """Between two looks leases come back, as their gateways renew them."""

    def __init__(self, system: Graves, *requests: Admitted) -> None:
        super().__init__(system.redis, Births(system.redis, history_in(system.engine)), again_s=0.0)
        self._system = system
        self._requests = requests
        self._looks = 0

    async def _look(self) -> Look:
        self._looks += 1
        if self._looks == 2:
            await leased(self._system, *self._requests)
        return await super()._look()


@pytest.mark.parametrize("unseen_ms", [0, PRESENT_MS + 1_000, 20_000, 70_000])
async def test_any_copy_says_whose_a_lease_is(system: Graves, unseen_ms: int) -> None:
    """Its gateway is there, or stopped long enough ago to renew nothing: leases live a while
    longer. One that nobody has a copy of is found all the same."""
    gateway, (running, ended, nobodys) = a_gateway(), [an_admission() for _ in range(3)]
    await system.copied(gateway, running, a_record(ended))
    await leased(system, running, ended, nobodys)
    await system.last_seen(gateway, unseen_ms, Heartbeat(1, 3, 1, 0))
    assert await named(system) == {nobodys.request_id}


async def test_what_is_open_and_holds_no_lease_is_of_a_gateway_that_is_there(
    system: Graves,
) -> None:
    """One that is not there cannot renew any."""
    there, away = a_gateway(), a_gateway()
    one, other = an_admission(), an_admission()
    await system.copied(there, one)
    await system.copied(away, other)
    await system.last_seen(away, 20_000, Heartbeat(1, 1, 1, 0))
    await system.last_seen(there, 0, Heartbeat(1, 1, 1, 0))
    assert await named(system) == {one.request_id}


async def test_a_copy_of_anybody_is_not_settled(system: Graves) -> None:
    """REC-3 counts on no end of a request that is open anywhere, or whose end is on its way."""
    gateway, (running, ended) = a_gateway(), [an_admission() for _ in range(2)]
    await system.copied(gateway, running, a_record(ended))
    await system.last_seen(gateway, 20_000, Heartbeat(1, 3, 1, 0))
    found = await live(system).live()
    assert found.unsettled == {running.request_id, ended.request_id}


async def test_a_lease_that_came_back_between_two_looks_is_held(system: Graves) -> None:
    """Redis forgot all, and the copy of a request was written again before its lease."""
    gateway, (back, without) = a_gateway(), [an_admission() for _ in range(2)]
    await system.copied(gateway, back, without)
    await system.last_seen(gateway, 0, Heartbeat(1, 2, 2, 0))
    assert await named(system, stores=BackSoon(system, back)) == {without.request_id}


async def test_nobody_is_gone_before_its_reapers_have_it_so(system: Graves) -> None:
    """One that is stopped for long, where they wait for longer, comes back to what it has open."""
    gateway = a_gateway()
    await shipped(system, gateway, admitted=5, ended=0)
    await seen(system, gateway, 85)
    assert await sizes(system, gone_after_ms=300_000) == []
    assert await sizes(system) == [5]


async def test_rows_whose_end_the_journal_has_told_too_excuse_no_other(system: Graves) -> None:
    """Of a gateway that is gone, two ends went past its journal, which told them later; two more
    were admitted and never ended."""
    gateway, admissions = a_gateway(), [an_admission() for _ in range(2)]
    async with system.engine.begin() as db:
        rows = [JournaledRecord(a_record(each), gateway) for each in admissions]
        await insert_batch(db, rows)
        late = [
            JournaledRecord(row.record, gateway, 1, 3 + number) for number, row in enumerate(rows)
        ]
        assert await keep_late(db, late) == 2
    await shipped(system, gateway, admitted=4, ended=2)
    await seen(system, gateway, 85)
    assert await sizes(system) == [2]


async def test_an_admission_that_nobody_could_read_is_no_live_request(system: Graves) -> None:
    """It is a letter and counts as an end; also once that is resolved."""
    gateway = a_gateway()
    await shipped(system, gateway, admitted=0, ended=2)
    await seen(system, gateway, 85)
    assert await sizes(system) == [2]
    async with system.engine.begin() as db:
        await bury(db, [DeadLetter(gateway, "1:1", None, "unreadable", b"x")])
    assert await sizes(system) == []
    async with system.engine.begin() as db:
        await db.execute(text("UPDATE usage_dead_letter SET resolved_at = now()"))
    assert await sizes(system) == []
