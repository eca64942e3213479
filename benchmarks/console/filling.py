"""Fills the benchmark's database and its Redis."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from benchmarks.billing.__main__ import PRICES
from benchmarks.console import rows
from billing.domain.invoicing.credit import CreditLine
from billing.domain.invoicing.issuing import Billed, Override
from billing.domain.invoicing.party import Customer, Seller
from billing.domain.invoicing.periods import Month, month_of_instant, previous
from billing.postgres.coarse_rollups import make_coarser
from billing.postgres.credit_notes import issue_credit_note
from billing.postgres.invoice_draft import draft_invoice
from billing.postgres.invoice_issue import issue_invoice
from billing.postgres.invoice_settle import note_payment
from billing.postgres.rollups import load_differences
from billing.postgres.sellers import save_seller
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import connect_redis
from gateway.administration import Administration
from gateway.domain.account import Role
from gateway.domain.decisions import Demand
from gateway.domain.hosted import HostedModel, HostedProvider
from gateway.domain.scopes import ScopeLimits

CREDITED = CreditLine(position=1, amount_minor=1)
DAYS = 90
CHUNK = 250_000
AUDIT_CHUNK = 20_000
ACTIVE = 1_000
LEASE_MS = 600_000
PASSWORD = "correct horse battery"  # noqa: S105 - of a database that lives for an hour
ADMIN, TENANT_ADMIN = "admin@weir.local", "tenant@weir.local"
FIRST, HOSTED = "t-00000", "h"
BY = "benchmark"


Say = Callable[[str], None]


class Filling:
    """Of so many tenants, records and audit entries."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        tenants: int,
        records: int,
        audit: int,
        say: Callable[..., None],
    ) -> None:
        self._engine = engine
        self._tenants = tenants
        self._records = records
        self._audit = audit
        self._say = say
        now = datetime.now(UTC)
        self._until = now - timedelta(minutes=1)
        self._since = self._until - timedelta(days=DAYS)
        last = previous(month_of_instant(now, "UTC"))
        self.months: tuple[Month, ...] = (previous(last), last)

    async def fill(self) -> None:
        """All of it. Raises RuntimeError where roll-ups are not their records."""
        await self._directory()
        self._say("directory")
        await self._partitions()
        for first in range(0, self._records, CHUNK):
            await self._usage(first, min(first + CHUNK, self._records) - 1)
        self._say("records")
        await self._roll_ups()
        self._say("roll-ups")
        await self._invoices()
        self._say("invoices")
        for first in range(0, self._audit, AUDIT_CHUNK):
            last = min(first + AUDIT_CHUNK, self._audit) - 1
            await self._run(rows.AUDIT, tenants=self._tenants, first=first, last=last)
        self._say("audit log")
        async with self._engine.connect() as db:
            await db.execution_options(isolation_level="AUTOCOMMIT")
            await db.execute(text("VACUUM ANALYZE"))
            await db.execute(text("CHECKPOINT"))
        self._say("vacuum")

    async def _directory(self) -> None:
        for statement in (rows.MODELS, rows.WORKERS, PRICES):
            await self._run(statement)
        for statement in (rows.TENANTS, rows.KEYS):
            await self._run(statement, count=self._tenants)
        verbs = Administration(self._engine)
        await verbs.create_user(BY, ADMIN, Role.ADMIN, PASSWORD)
        await verbs.create_user(BY, TENANT_ADMIN, Role.TENANT_ADMIN, PASSWORD, tenant_id=FIRST)
        provider = HostedProvider(
            name=HOSTED, url="http://127.0.0.1:1", models={"large": HostedModel(name="large")}
        )
        await verbs.register_hosted_provider(BY, provider, api_key=None)
        async with self._engine.begin() as db:
            await save_seller(db, Seller(name="Benchmark", country="DE"), by=BY)

    async def _partitions(self) -> None:
        """Of the months that there were before this database was made."""
        month = month_of_instant(self._since, "UTC")
        while month.start < self._until:
            later = month_of_instant(month.end, "UTC")
            for parent in ("usage_record", "usage_attempt"):
                named = rows.PARTITION.format(
                    parent=parent,
                    year=month.start.year,
                    month=month.start.month,
                    next_year=later.start.year,
                    next_month=later.start.month,
                )
                await self._run(named)
            month = later

    async def _usage(self, first: int, last: int) -> None:
        # Without the marks that each leaves: roll-ups are made at once below.
        await self._run(
            rows.RECORDS,
            by_hand=True,
            tenants=self._tenants,
            start=_ms(self._since),
            span=DAYS * 86_400_000,
            count=self._records,
            first=first,
            last=last,
        )

    async def _roll_ups(self) -> None:
        since = self._since
        while since < self._until + timedelta(days=1):
            start = datetime(since.year, since.month, since.day, tzinfo=UTC)
            until = start + timedelta(days=1)
            await self._run(rows.ROLL_UPS, since=_ms(start), until=_ms(until))
            since = until
        await self._run(rows.ATTEMPTS, since=_ms(self._until - timedelta(days=1)), by_hand=True)
        hour = self._until.replace(minute=0, second=0, microsecond=0)
        async with self._engine.connect() as db:
            found = await load_differences(db, hour - timedelta(hours=1), hour, limit=1)
        if found:
            raise RuntimeError(f"roll-ups are not their records: {found}")

    async def _invoices(self) -> None:
        """The first tenant's as they are made, and a copy for each of the others."""
        whom = Billed(
            customer=Customer(tenant_id=FIRST, name="Tenant number 0"),
            currency="USD",
            time_zone="UTC",
        )
        for month in self.months:
            async with self._engine.begin() as db:
                drafted = await draft_invoice(db, whom, month.name, by=BY)
                override = Override(reason="benchmark") if drafted.blockers else None
                await issue_invoice(
                    db,
                    drafted.invoice.id,
                    whom,
                    expected=drafted.blockers,
                    override=override,
                    by=BY,
                )
                await issue_credit_note(
                    db, drafted.invoice.id, wanted=[CREDITED], reason="benchmark", by=BY
                )
                await note_payment(
                    db,
                    drafted.invoice.id,
                    amount_minor=1,
                    received_on=month.end.date(),
                    reference="benchmark",
                    by=BY,
                )
            await self._run(rows.INVOICES, by_hand=True, month=month.name)

    async def _run(self, statement: str, *, by_hand: bool = False, **values: object) -> None:
        """One transaction; `by_hand` without triggers."""
        async with self._engine.begin() as db:
            await db.execute(text("SET LOCAL synchronous_commit = off"))
            await db.execute(text("SET LOCAL work_mem = '256MB'"))
            if by_hand:
                await db.execute(text("SET LOCAL session_replication_role = replica"))
            await db.execute(text(statement), values)


async def make_all_coarser(engine: AsyncEngine) -> None:
    """Of what is over: until nothing is marked."""
    while True:
        async with engine.begin() as db:
            await db.execute(text("SET LOCAL synchronous_commit = off"))
            if not await make_coarser(db):
                return


async def make_active(redis_url: str, tenants: int) -> None:
    """Sequences and tokens of up to 1,000 tenants, held as by a gateway that never ends them."""
    redis = connect_redis(redis_url, timeout_ms=5_000)
    ledger = RedisLedger(redis, ttl_ms=LEASE_MS, timeout_ms=5_000)
    month = f"{datetime.now(UTC):%Y-%m}"
    numbers = range(min(ACTIVE, tenants))
    for first in range(0, len(numbers), 50):
        together = numbers[first : first + 50]
        await asyncio.gather(*(_admit(ledger, number, month) for number in together))
    await redis.aclose()


async def _admit(ledger: RedisLedger, number: int, month: str) -> None:
    tenant, key = f"t-{number:05}", f"k-{number:05}-0"
    names = ("tenant", f"key:{key}", "model:large", f"key:{key}/model:large")
    scopes = [
        ScopeLimits(scope=name, version=1, max_sequences=None, tpm=None, rpm=None) for name in names
    ]
    for which in range(1 + number % 3):
        demand = Demand(
            request_id=UUID(int=(number << 8) + which + 1).hex,
            sequences=1,
            tokens=400,
            floor_tokens=400,
            month=month,
        )
        await ledger.acquire(tenant, key, "large", demand, scopes)
    now_ms = _ms(datetime.now(UTC))
    await ledger.mark_active([tenant], now_ms=now_ms)


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
