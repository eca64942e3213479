"""Who may still bring a record of a period that is over."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest
from invoice_world import InvoiceWorld
from reaping import Everyone, Graves, a_gateway, graves
from sqlalchemy import text
from tenant_examples import a_key, a_tenant
from usage_examples import a_record, an_admission

from billing.domain.invoicing.issuing import Blocker, Obstacle
from billing.domain.invoicing.periods import month
from billing.postgres.gateways_seen import Seen, note_seen
from gateway.adapters import invoice_readiness
from gateway.adapters.births import Births, history_in
from gateway.adapters.invoice_readiness import find_expected
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.number_past import NumberPast
from gateway.adapters.postgres_past import PostgresPast, RestoreWatch
from gateway.adapters.presence import Presence
from gateway.adapters.reconciler_live import LiveStores
from gateway.adapters.redis import connect_redis
from gateway.adapters.shipper import Mark
from gateway.domain.admission import Demand, Granted
from gateway.domain.lease import Admitted
from gateway.domain.postgres_past import AuditHead, Restored
from gateway.domain.presence import Heartbeat
from gateway.domain.scopes import scopes_of

END_MS = time.time_ns() // 1_000_000 - 60_000
END = datetime.fromtimestamp(END_MS / 1000, UTC)


class Shipping:
    """A gateway's shipper that has shipped all, or hangs."""

    def __init__(self) -> None:
        self.hangs = False

    def mark(self) -> Mark:
        return Mark((1, 1), spare=False)

    async def wait_shipped(self, mark: Mark, *, timeout_ms: int) -> bool:
        await asyncio.sleep(0)
        return not self.hangs


@pytest.fixture
async def system(
    database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Graves]:
    """Empty stores; who does not ship is not waited for long."""
    monkeypatch.setattr(invoice_readiness, "SHIPS_WITHIN_S", 1.0)
    async with graves(database_url, redis_url) as made:
        yield made


@asynccontextmanager
async def a_gateway_serves(system: Graves, shipping: Shipping) -> AsyncIterator[str]:
    """One that is there meanwhile."""
    name = a_gateway()
    told = asyncio.create_task(Presence(system.gateways, name, shipping).run())
    try:
        yield name
    finally:
        told.cancel()
        with suppress(asyncio.CancelledError):
            await told


async def found(system: Graves, end: datetime = END) -> list[tuple[Obstacle, str, int]]:
    """What stands in the way."""
    live = LiveStores(system.redis, Births(system.redis, history_in(system.engine)))
    return shown(await find_expected(system.engine, live, "acme", end))


def shown(blockers: list[Blocker]) -> list[tuple[Obstacle, str, int]]:
    return [(each.obstacle, each.subject, each.count) for each in blockers]


async def leased(system: Graves, *requests: Admitted) -> None:
    """They hold leases of their tenant."""
    ledger = RedisLedger(system.redis, ttl_ms=60_000, timeout_ms=1_000)
    scopes = scopes_of(a_tenant(), a_key(), "smollm2-135m")
    for request in requests:
        demand = Demand(request.request_id.hex, 1, 112, 112)
        decision = await ledger.acquire("acme", a_key().id, "smollm2-135m", demand, scopes)
        assert isinstance(decision, Granted)


async def test_what_runs_since_before_the_end_is_waited_for(system: Graves) -> None:
    """A lease, or a copy of an admission, of the tenant, that arrived before: the last millisecond
    counts, the end itself does not; what has ended does not, nor another tenant's."""
    async with a_gateway_serves(system, Shipping()) as name:
        assert await found(system) == []
        await leased(system, an_admission(END_MS), an_admission(END_MS + 5))
        await system.copied(
            name,
            an_admission(END_MS - 1, tenant_id="other"),
            a_record(an_admission(END_MS - 1)),
            an_admission(END_MS),
        )
        assert await found(system) == []
        await leased(system, an_admission(END_MS - 1))
        await system.copied(name, an_admission(END_MS - 5_000))
        assert await found(system) == [(Obstacle.STILL_OPEN, "requests", 2)]


async def test_a_gateway_that_cannot_ship_is_named(system: Graves) -> None:
    """Its records may be of any time."""
    shipping = Shipping()
    async with a_gateway_serves(system, shipping) as name:
        assert await found(system) == []
        shipping.hangs = True
        assert await found(system) == [(Obstacle.GATEWAY_BEHIND, name, 1)]


async def test_a_gateway_that_is_gone_with_its_journal_is_named(system: Graves) -> None:
    """Where Redis knows it, and where only Postgres does; not one that had shipped all."""
    async with a_gateway_serves(system, Shipping()):
        gone, whole = a_gateway(), a_gateway()
        await system.last_seen(gone, 70_000, Heartbeat(1, 3, 0, 2))
        await system.last_seen(whole, 70_000, Heartbeat(1, 3, 0, 3))
        now_ms = time.time_ns() // 1_000_000
        async with system.engine.begin() as db:
            await note_seen(db, [Seen("gw-lost", 1, 9, 4, 0, now_ms - 86_400_000)])
        assert await found(system) == [
            (Obstacle.GATEWAY_BEHIND, name, 1) for name in sorted([gone, "gw-lost"])
        ]


async def test_a_request_may_still_wait_in_a_queue(system: Graves) -> None:
    """It is admitted under its arrival: for as long as one may wait, the month is not closed."""
    async with a_gateway_serves(system, Shipping()):
        end = datetime.now(UTC) - timedelta(seconds=1)
        assert await found(system, end) == [(Obstacle.STILL_OPEN, "requests", 1)]


async def test_without_redis_nobody_knows(system: Graves, free_port: int) -> None:
    """None to ask, none that answers, and one whose gateways have not been heard of yet."""
    unknown = [(Obstacle.GATEWAY_BEHIND, "redis", 1)]
    assert shown(await find_expected(system.engine, None, "acme", END)) == unknown
    away = connect_redis(f"redis://127.0.0.1:{free_port}", timeout_ms=200)
    live = LiveStores(away, Births(away, history_in(system.engine)))
    assert shown(await find_expected(system.engine, live, "acme", END)) == unknown
    await away.aclose()


async def test_a_restored_postgres_is_looked_at_first(system: Graves) -> None:
    """Numbers, voids and payments may be lost: nothing is issued until somebody has said that they
    know."""
    past = PostgresPast(system.redis)
    await past.enter_restored(Restored(1_000, 3, 5))
    live = LiveStores(system.redis, Births(system.redis, history_in(system.engine)))
    found = await find_expected(system.engine, live, "acme", END, longest_wait_ms=1)
    assert [(each.obstacle, each.subject) for each in found] == [
        (Obstacle.GATEWAY_BEHIND, "postgres")
    ]
    await past.confirm()
    assert await find_expected(system.engine, live, "acme", END, longest_wait_ms=1) == []


async def test_nobody_need_have_looked_since_the_restore(system: Graves) -> None:
    """With every gateway stopped the head of the audit log is compared here."""
    await PostgresPast(system.redis).enter_audit(AuditHead(3, "ab"))
    live = LiveStores(system.redis, Births(system.redis, history_in(system.engine)))
    found = await find_expected(system.engine, live, "acme", END, longest_wait_ms=1)
    assert shown(found) == [(Obstacle.GATEWAY_BEHIND, "postgres", 1)]


async def test_a_number_that_a_customer_has_is_given_to_no_other(system: Graves) -> None:
    """The first invoice after a restore: whose number it was may have it again, with a reason;
    another tenant not, nor another month."""
    world = InvoiceWorld(system.engine)
    await world.open()
    await world.use("2026-01-03T10:00:00Z")
    await world.roll_up()
    issued = await world.close("2026-01")
    number = issued.invoice.number
    assert number is not None
    await RestoreWatch(system.redis, system.engine, Everyone(), kept_ms=3_600_000).turn()
    async with system.engine.begin() as db:
        await db.execute(text("SET LOCAL session_replication_role = replica"))
        await db.execute(text("TRUNCATE invoice, invoice_number CASCADE"))
    behind = (Obstacle.GATEWAY_BEHIND, "postgres", 1)
    given = (Obstacle.NUMBER_GIVEN, number, 1)
    live = LiveStores(system.redis, Births(system.redis, history_in(system.engine)))

    async def in_the_way(tenant_id: str, name: str) -> list[Blocker]:
        # Of this Redis nobody knows which gateways it has not heard of yet: that is told beside.
        found = await find_expected(system.engine, live, tenant_id, month(name, "UTC").end)
        return [each for each in found if each.subject in ("postgres", number)]

    for tenant_id, name, expected in (
        ("other", "2026-01", [behind, given]),
        ("acme", "2026-02", [behind, given]),
        ("acme", "2026-01", [behind]),
    ):
        found = await in_the_way(tenant_id, name)
        assert shown(found) == expected
        assert [each.can_be_overridden for each in found] == [True, False][: len(expected)]
    await NumberPast(system.redis).forget()
    assert await in_the_way("other", "2026-01") == []
