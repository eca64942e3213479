"""What the straight line needs from the outside, as protocols that the adapters implement."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from billing.domain.usage_record import UsageRecord
from gateway.domain.admission import Demand, Granted, Refused, ScopeLimits, ScopeUse, Settled
from gateway.domain.lease import Admitted
from gateway.domain.tenant import ApiKey, Model, Tenant, Worker


class Clock(Protocol):
    """Time as the straight line reads it."""

    def now_ms(self) -> int:
        """Unix time in milliseconds, UTC."""

    def monotonic_us(self) -> int:
        """A clock that never jumps, in microseconds, for durations."""


class Directory(Protocol):
    """Tenants, keys, models and workers, held in memory and refreshed behind the scenes.

    Every method is synchronous and cheap; what it returns is at most `age_ms` old.
    """

    def key_by_digest(self, digest: bytes) -> ApiKey | None:
        """The key whose secret has this SHA-256 digest, also when revoked or expired."""

    def tenant(self, tenant_id: str) -> Tenant | None: ...

    def model(self, model_id: str) -> Model | None: ...

    def models(self) -> list[Model]: ...

    def workers(self, model_id: str | None = None) -> list[Worker]:
        """Workers of one model, or all."""

    @property
    def age_ms(self) -> int:
        """Since the last successful look at Postgres."""


class LedgerUnavailable(Exception):
    """The store of leases cannot be reached; what was asked may or may not have taken effect."""


@dataclass(frozen=True)
class HeldLease:
    """A lease as its holder remembers it: enough to renew it, settle it or create it again."""

    request_id: str
    tenant_id: str
    key_id: str
    model: str
    sequences: int
    reserved_tokens: int
    second: int
    scope_names: tuple[str, ...]


class Ledger(Protocol):
    """Leases and reservations, shared by all gateways. Every method raises LedgerUnavailable."""

    async def acquire(
        self,
        tenant_id: str,
        key_id: str,
        model: str,
        demand: Demand,
        scopes: Sequence[ScopeLimits],
    ) -> Granted | Refused: ...

    async def settle(self, lease: HeldLease, *, actual_tokens: int, ran: bool) -> Settled: ...

    async def renew(self, tenant_id: str, leases: Sequence[HeldLease]) -> dict[str, int]: ...

    async def observe(
        self, tenant_id: str, scopes: Sequence[ScopeLimits]
    ) -> tuple[ScopeUse, ...]: ...

    async def mark_active(self, tenant_ids: Sequence[str], *, now_ms: int) -> None: ...

    async def sweep(self, *, now_ms: int, idle_ms: int, period_ms: int) -> int: ...


class UsageJournal(Protocol):
    """The gateway's own durable account of what it admitted and how that ended."""

    async def admitted(self, entry: Admitted) -> None:
        """Durable on return. Raises Overloaded(metering_unavailable) if it cannot be."""

    async def ended(self, record: UsageRecord) -> None:
        """Durable on return, in the file or, where the file failed, in Postgres itself."""

    @property
    def failing(self) -> bool:
        """Whether the file can no longer be written: nothing new may be admitted."""


class UpstreamStream(Protocol):
    """One open stream of an engine: the payloads of its `data:` events, `[DONE]` left out."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def abort(self) -> None:
        """Ask the engine to stop now; the stream then ends with its final usage, or is cut."""

    async def aclose(self) -> None:
        """Close the connection; harmless twice."""


class Engine(Protocol):
    """Opens streams on workers."""

    async def open(
        self, worker: Worker, path: str, upstream_id: str, body: bytes, headers: Mapping[str, str]
    ) -> UpstreamStream:
        """Dispatch one request. Raises WorkerFailed where the worker cannot be reached or answers
        5xx, EngineRefused where it answers 4xx."""
