"""The ports of the straight line in memory: no server, a clock that stands still.

The ledger executes the specification itself (`gateway.domain.admission`), so what it grants is what
Redis would grant.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from tenant_examples import a_key, a_model, a_tenant

from billing.domain.price_book import PriceBook
from billing.domain.usage_record import UsageRecord
from gateway.domain import admission
from gateway.domain.admission import (
    Demand,
    Granted,
    Lease,
    MoneyUnknown,
    MonthBegun,
    Paused,
    Refused,
    Renewed,
    Settled,
    TenantState,
)
from gateway.domain.engine_facts import NOTHING_KNOWN, EngineFacts
from gateway.domain.hosted import HostedProvider
from gateway.domain.lease import Admitted
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.domain.tenant import ApiKey, Model, Tenant, Worker
from gateway.domain.worker import WorkerView
from gateway.errors import Overloaded
from gateway.serving.ports import HeldLease, LedgerUnavailable
from gateway.wire.request import CompletionRequest

START_MS = 1_800_000_000_000
TTL_MS = 10_000


class StandingClock:
    """Time moves only when told to."""

    def __init__(self) -> None:
        self.us = START_MS * 1000

    def advance(self, ms: int) -> None:
        self.us += ms * 1000

    def now_ms(self) -> int:
        return self.us // 1000

    def monotonic_us(self) -> int:
        return self.us


class MemoryDirectory:
    """One tenant with one key, models and workers; each may be replaced."""

    def __init__(self, *workers: Worker) -> None:
        self.one_tenant: Tenant | None = a_tenant()
        self.keys = [a_key()]
        self.all_models = [a_model()]
        self.all_workers = list(workers)
        self.all_providers: list[HostedProvider] = []
        self.prices = PriceBook()
        self.prices_known_until_ms = 2**53
        self.age_ms = 0
        self.revocations_age_ms = 0
        self.wakened = 0
        """How often a request asked for a directory that is awake."""

    async def waken(self) -> None:
        self.wakened += 1

    def key_by_digest(self, digest: bytes) -> ApiKey | None:
        return next((key for key in self.keys if key.digest == digest), None)

    def tenant(self, tenant_id: str) -> Tenant | None:
        found = self.one_tenant
        return found if found is not None and found.id == tenant_id else None

    def model(self, model_id: str) -> Model | None:
        return next((model for model in self.all_models if model.id == model_id), None)

    def models(self) -> list[Model]:
        return self.all_models

    def workers(self, model_id: str | None = None) -> list[Worker]:
        return [w for w in self.all_workers if model_id in (None, w.model)]

    def hosted_providers(self) -> list[HostedProvider]:
        return self.all_providers

    def price_book(self) -> PriceBook:
        return self.prices

    def knows_prices_at(self, at_ms: int) -> bool:
        return at_ms < self.prices_known_until_ms


def specified(lease: HeldLease) -> Lease:
    """A held lease as the specification takes it."""
    return Lease(
        sequences=lease.sequences,
        tokens=lease.reserved_tokens,
        second=lease.second,
        scopes=lease.scope_names,
        expires_at_ms=0,
        cost_pico=lease.cost_pico,
        month=lease.month,
        carried=lease.carried,
    )


class MemoryLedger:
    """Runs the specification; `away` makes every call fail, `loses_replies` after its effect."""

    def __init__(self, clock: StandingClock, *, ttl_ms: int = TTL_MS) -> None:
        self._clock = clock
        self._ttl_ms = ttl_ms
        self.states: dict[str, TenantState] = defaultdict(TenantState)
        self.away = False
        self.loses_replies = False
        self.settlements: list[tuple[str, int, bool, Settled]] = []
        self.costs: list[tuple[str, int]] = []
        self.renewals: list[Renewed] = []
        self.marked: list[str] = []
        self.page = 256
        self.reaped: list[str] = []
        self.taken_out: list[tuple[list[str], int]] = []
        self.shard_away: set[str] = set()
        self.sweep_turn: str | None = None
        self.claims: list[int] = []
        self.on_acquired: Callable[[], None] = lambda: None

    def lose_everything(self) -> None:
        """The store comes back empty, now."""
        now_ms = self._clock.now_ms()
        beginning = admission.Beginning(now_ms + self._ttl_ms, now_ms + 61_000)
        self.states = defaultdict(lambda: TenantState(beginning=beginning))

    async def _answer(self, tenant_id: str = "") -> None:
        await asyncio.sleep(0)
        if self.away or tenant_id in self.shard_away:
            raise LedgerUnavailable(TimeoutError)

    def _reply(self) -> None:
        if self.loses_replies:
            raise LedgerUnavailable(TimeoutError)

    async def acquire(
        self,
        tenant_id: str,
        key_id: str,
        model: str,
        demand: Demand,
        scopes: Sequence[ScopeLimits],
    ) -> Granted | Refused | Paused | MoneyUnknown:
        await self._answer()
        decision = admission.acquire(
            self.states[tenant_id],
            demand,
            tuple(scopes),
            now_ms=self._clock.now_ms(),
            ttl_ms=self._ttl_ms,
        )
        self.on_acquired()
        self._reply()
        return decision

    async def settle(
        self, lease: HeldLease, *, actual_tokens: int, ran: bool, actual_cost_pico: int = 0
    ) -> Settled:
        await self._answer()
        found = admission.settle(
            self.states[lease.tenant_id],
            lease.request_id,
            actual_tokens=actual_tokens + lease.base_tokens,
            ran=ran or lease.base_tokens > 0,
            now_ms=self._clock.now_ms(),
            actual_cost_pico=actual_cost_pico + lease.base_cost_pico,
            held=specified(lease),
        )
        self.settlements.append((lease.request_id, actual_tokens, ran, found))
        self.costs.append((lease.request_id, actual_cost_pico))
        self._reply()
        return found

    async def renew(self, tenant_id: str, leases: Sequence[HeldLease]) -> Renewed:
        await self._answer()
        counts = admission.renew(
            self.states[tenant_id],
            {lease.request_id: specified(lease) for lease in leases},
            now_ms=self._clock.now_ms(),
            ttl_ms=self._ttl_ms,
        )
        self.renewals.append(counts)
        return counts

    async def begin_month(
        self, tenant_id: str, month: str, *, again: bool = False
    ) -> MonthBegun | None:
        await self._answer()
        return admission.begin_month(
            self.states[tenant_id], month, now_ms=self._clock.now_ms(), again=again
        )

    async def unsettled_or_recent(self, tenant_id: str) -> frozenset[str]:
        await self._answer()
        return admission.unsettled_or_recent(self.states[tenant_id], now_ms=self._clock.now_ms())

    async def finish_month(
        self, tenant_id: str, month: str, at_ms: int, spent: Mapping[str, int]
    ) -> bool:
        await self._answer()
        return admission.finish_month(
            self.states[tenant_id], month, at_ms, spent, now_ms=self._clock.now_ms()
        )

    async def observe(
        self, tenant_id: str, scopes: Sequence[ScopeLimits], month: str = ""
    ) -> tuple[ScopeUse, ...]:
        await self._answer(tenant_id)
        return admission.observe(
            self.states[tenant_id], tuple(scopes), now_ms=self._clock.now_ms(), month=month
        )

    async def mark_active(self, tenant_ids: Sequence[str], *, now_ms: int) -> None:
        await self._answer()
        self.marked += tenant_ids

    async def ping(self) -> None:
        await self._answer()

    async def active_tenants(self, at_most: int) -> list[str]:
        await self._answer()
        return list(dict.fromkeys(reversed(self.marked)))[:at_most]

    async def active_page(self, cursor: int) -> tuple[int, list[str]]:
        await self._answer()
        names = list(dict.fromkeys(self.marked))
        following = cursor + self.page
        return following if following < len(names) else 0, names[cursor:following]

    async def take_out(self, tenant_ids: Sequence[str], *, before_ms: int) -> None:
        await self._answer()
        self.taken_out.append((list(tenant_ids), before_ms))

    async def claim_sweep(self, holder: str, *, for_ms: int) -> bool:
        await self._answer()
        if self.sweep_turn not in (None, holder):
            return False
        self.claims.append(for_ms)
        return True

    async def reap(self, tenant_id: str) -> tuple[int, int]:
        await self._answer(tenant_id)
        state = self.states[tenant_id]
        admission.observe(state, (), now_ms=self._clock.now_ms())
        self.reaped.append(tenant_id)
        return len(state.leases), len(state.lapsed)


class MemoryJournal:
    """Two lists; `refuses` says which of the two calls fails."""

    def __init__(self) -> None:
        self.admissions: list[Admitted] = []
        self.records: list[UsageRecord] = []
        self.failing = False
        self.refuses: set[str] = set()
        self.on_admitted: Callable[[], None] = lambda: None
        self.on_ended: Callable[[], None] = lambda: None

    async def admitted(self, entry: Admitted) -> None:
        await asyncio.sleep(0)
        self._fail("admitted")
        self.on_admitted()
        self.admissions.append(entry)

    async def ended(self, record: UsageRecord) -> None:
        await asyncio.sleep(0)
        self._fail("ended")
        self.on_ended()
        self.records.append(record)

    def _fail(self, call: str) -> None:
        if call in self.refuses:
            raise Overloaded("usage cannot be recorded now", code="metering_unavailable")


class MemoryFleet:
    """Every worker of the directory is healthy until it failed."""

    def __init__(self, directory: MemoryDirectory) -> None:
        self._directory = directory
        self.unhealthy: set[str] = set()
        self.open: Counter[str] = Counter()
        self.facts: dict[str, EngineFacts] = {}

    def views(self, model: str | None = None) -> list[WorkerView]:
        return [
            WorkerView(
                worker=worker,
                healthy=worker.id not in self.unhealthy,
                in_flight=self.open[worker.id],
                engine=self.facts.get(worker.id, NOTHING_KNOWN),
            )
            for worker in self._directory.workers(model)
        ]

    def opened(self, worker_id: str) -> None:
        self.open[worker_id] += 1

    def closed(self, worker_id: str) -> None:
        self.open[worker_id] -= 1

    def failed(self, worker_id: str) -> None:
        self.unhealthy.add(worker_id)


class FixedTokenizer:
    """Every prompt has so many tokens; None: no worker can count."""

    def __init__(self, tokens: int | None = 5) -> None:
        self.tokens = tokens
        self.on_count: Callable[[], None] = lambda: None

    async def count(self, request: CompletionRequest, tenant_id: str) -> list[int] | None:
        await asyncio.sleep(0)
        self.on_count()
        return None if self.tokens is None else [self.tokens] * len(request.prompts)
