"""REC-2 and gateways that are not there for a while: paused, cut off, or just killed."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from reaping import Graves, a_gateway, graves
from tenant_examples import a_key, a_tenant
from usage_examples import a_record, an_admission

from billing.domain.reconciliation.findings import Check
from gateway.adapters.births import Births, history_in
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.reconciler import Period, Reconciler, Scope
from gateway.adapters.reconciler_live import PRESENT_MS, LiveStores
from gateway.domain.admission import Demand, Granted
from gateway.domain.lease import Admitted
from gateway.domain.presence import Heartbeat
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


async def named(system: Graves) -> set[UUID | None]:
    """Requests of REC-2's findings."""
    until = datetime.now(UTC)
    scope = Scope(Period(until - timedelta(hours=1), until))
    verdicts = await Reconciler(system.engine, live(system)).run(scope)
    (verdict,) = [each for each in verdicts if each.check == Check.REQUESTS]
    assert verdict.not_applicable is None
    return {finding.request_id for finding in verdict.findings}


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
