"""What the straight line needs from the outside, as protocols that the adapters implement."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from billing.domain.price_book import PriceBook
from billing.domain.usage_record import UsageRecord
from gateway.domain.admission import (
    Demand,
    Granted,
    MoneyUnknown,
    MonthBegun,
    Paused,
    Refused,
    Renewed,
    Settled,
)
from gateway.domain.hosted import HostedProvider
from gateway.domain.lease import Admitted
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.domain.tenant import ApiKey, Model, Tenant, Worker
from gateway.domain.worker import WorkerView
from gateway.wire.bodies import Endpoint
from gateway.wire.request import CompletionRequest


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

    def hosted_providers(self) -> list[HostedProvider]:
        """All hosted providers, disabled ones too."""

    def price_book(self) -> PriceBook:
        """Every list price, those that begin later too."""

    def knows_prices_at(self, at_ms: int) -> bool:
        """Whether the price book has every price that holds for a request that arrived then. False
        where Postgres was not seen for a while, and a newer price may have begun."""

    @property
    def age_ms(self) -> int:
        """Since the last successful look at Postgres."""

    @property
    def revocations_age_ms(self) -> int:
        """Since revocations were last seen, in Postgres or in Redis."""

    async def waken(self) -> None:
        """Where the process stood still, wait up to 1 s for a store to say what happened."""


class LedgerUnavailable(Exception):
    """The store of leases cannot be reached; what was asked may or may not have taken effect."""

    def __init__(self, reason: type[BaseException]) -> None:
        super().__init__(reason.__name__)
        self.reason = reason


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
    cost_pico: int = 0
    """The most that it may cost: what is reserved of the month's budgets."""
    month: str = ""
    """The key of the billing month that it counts in; empty where it counts in none."""
    carried: bool = False
    """Whether a request ran under it while the store could not be reached. The next renewal or
    settlement charges its reservation to the store's present second, as if admitted then."""
    base_tokens: int = 0
    """Tokens of an earlier request under the same lease; `Ledger.settle` adds them."""
    base_cost_pico: int = 0
    """What that earlier request cost; `Ledger.settle` adds it."""


class Births(Protocol):
    """When each tenant's part of the store began."""

    async def born_ms(self, tenant_id: str) -> int:
        """The store's time (Unix ms) at which it came back empty; 0 where nothing was ever lost.
        Raises LedgerUnavailable where that cannot be told now."""


class Ledger(Protocol):
    """Leases and reservations, shared by all gateways. Every method raises LedgerUnavailable."""

    async def acquire(
        self,
        tenant_id: str,
        key_id: str,
        model: str,
        demand: Demand,
        scopes: Sequence[ScopeLimits],
    ) -> Granted | Refused | Paused | MoneyUnknown:
        """One decision over all scopes. Idempotent by request id."""

    async def settle(
        self, lease: HeldLease, *, actual_tokens: int, ran: bool, actual_cost_pico: int = 0
    ) -> Settled:
        """End a lease; repeating it changes nothing. `ran` is False where nothing was sent to an
        engine. What an earlier request used under it (`base_tokens`, `base_cost_pico`) is added
        here, and then the lease counts as one that ran."""

    async def renew(self, tenant_id: str, leases: Sequence[HeldLease]) -> Renewed:
        """Prolong leases of one tenant; what lapsed or was lost is taken up again."""

    async def observe(
        self, tenant_id: str, scopes: Sequence[ScopeLimits], month: str = ""
    ) -> tuple[ScopeUse, ...]:
        """Limits in force and use now; with a month, also its money."""

    async def begin_month(
        self, tenant_id: str, month: str, *, again: bool = False
    ) -> MonthBegun | None:
        """Track a month's money from now on; what it cost before is to be given to `finish_month`.
        None where it was begun within 3 s, but for `again`, by who may have begun it itself; later
        it is begun again, from nothing. Months of the same name and another key are forgotten."""

    async def unsettled_or_recent(self, tenant_id: str) -> frozenset[str]:
        """Requests whose money the store accounts for itself: held, lapsed and not yet settled, or
        settled since their month was begun."""

    async def finish_month(
        self, tenant_id: str, month: str, at_ms: int, spent: Mapping[str, int]
    ) -> bool:
        """Add what the month cost before, by scope in pico, and count it as known. False where
        `at_ms` is not when it was begun, or it was finished already: then nothing changed."""

    async def mark_active(self, tenant_ids: Sequence[str], *, now_ms: int) -> None: ...

    async def active_tenants(self, at_most: int) -> list[str]:
        """Tenants that may hold something, the most recently active first."""

    async def active_page(self, cursor: int) -> tuple[int, list[str]]:
        """Some of them from `cursor` on, 0 at first, and the next cursor, 0 at the end."""

    async def take_out(self, tenant_ids: Sequence[str], *, before_ms: int) -> None:
        """These hold nothing; who was marked since `before_ms` stays."""

    async def claim_sweep(self, holder: str, *, for_ms: int) -> bool:
        """Take or keep the turn to sweep for so long; False where another has it."""

    async def reap(self, tenant_id: str) -> tuple[int, int]:
        """Let what nobody renewed lapse; leases held, and lapsed ones remembered."""

    async def ping(self) -> None:
        """Return where the store runs scripts and takes what they write."""


class MonthRebuild(Protocol):
    """What brings the spend of a month back where the store does not know it."""

    async def rebuild(self, tenant_id: str, month: str) -> bool:
        """Whether the store may know it now. Who waits for it may be cancelled: it goes on. Does
        not raise."""


class UsageJournal(Protocol):
    """The gateway's own durable account of what it admitted and how that ended."""

    async def admitted(self, entry: Admitted) -> None:
        """Durable on return. Raises Overloaded(metering_unavailable) if it cannot be."""

    async def ended(self, record: UsageRecord) -> None:
        """Durable on return, in the file or, where the file failed, in Postgres itself."""

    @property
    def failing(self) -> bool:
        """Whether the file can no longer be written: nothing new may be admitted."""


class EngineRefused(Exception):
    """The engine answered with a client error (4xx) or said that it is full: not a failure of the
    worker. `message` is the engine's own and must not reach a tenant as it is."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"the engine answered {status}")
        self.status = status
        self.message = message


class UpstreamStream(Protocol):
    """One stream of an engine, opened when it is first iterated.

    Iterating yields the data of each event, `[DONE]` left out, and raises EngineRefused or
    WorkerFailed. It must be closed.
    """

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    @property
    def provider_request_id(self) -> str | None:
        """What the other side calls this request, once it has answered; None where it does not
        say."""

    def abort(self) -> None:
        """Ask the engine to stop now, also before it has answered. The stream then ends with its
        final usage or, where the engine takes longer than the drain time, is cut (WorkerFailed)."""

    async def aclose(self) -> None:
        """Close the connection; harmless twice."""


class Engine(Protocol):
    """Opens streams on workers."""

    def stream(
        self,
        worker: Worker,
        path: str,
        upstream_id: str,
        body: bytes,
        *,
        check_send: Callable[[], None] | None = None,
        traceparent: str | None = None,
    ) -> UpstreamStream:
        """A stream that is opened when it is first iterated. `check_send` is called once the
        connection is there and before any byte goes out; what it raises ends the attempt.
        `traceparent` goes with it as that header, None where no trace is told of."""


class RequestReader(Protocol):
    """Reads bodies of requests without stopping the event loop."""

    async def read(
        self, endpoint: Endpoint, body: bytes, headers: Mapping[bytes, bytes], *, tenant_id: str
    ) -> CompletionRequest:
        """The checked request. Raises InvalidRequest, naming the field and never quoting the body,
        and Overloaded(no_capacity) where it cannot be read in time."""


class Tokenizer(Protocol):
    """Counts a prompt's tokens as the engine will."""

    async def count(self, request: CompletionRequest, tenant_id: str) -> list[int] | None:
        """Tokens of each prompt, template included; None where no worker can count.

        Raises Overloaded(no_capacity) where those that can do not in time, or where the tenant has
        too much to count already: it then waits for itself, not for others' turn.
        """


class Fleet(Protocol):
    """What is known of the workers."""

    def views(self, model: str | None = None) -> list[WorkerView]: ...

    def opened(self, worker_id: str) -> None:
        """A stream of this gateway was opened on the worker."""

    def closed(self, worker_id: str) -> None: ...

    def failed(self, worker_id: str) -> None:
        """The worker could not be reached: not healthy until a probe succeeds."""


class ClientGone(Exception):
    """The client left before anything was admitted: there is nobody to answer."""


class ClientConnection(Protocol):
    """The tenant's end of one request."""

    @property
    def left(self) -> bool:
        """Whether the client has gone, or was given up on."""

    @property
    def status(self) -> int | None:
        """Of the answer, once it has begun."""

    def on_leave(self, callback: Callable[[], None]) -> None:
        """Call back once when the client leaves; at once if it has."""

    async def body(self, arrived: Callable[[int], None]) -> bytes:
        """The whole body. `arrived` is told the size of each piece before it is kept; what it
        raises ends the reading. Raises RequestTooLarge, InvalidRequest where it takes too long,
        ClientGone where it ends early."""

    async def start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None: ...

    async def write(self, data: bytes) -> None:
        """Hand over bytes; waits while the client is slow. Does nothing once it has left."""

    async def finish(self, data: bytes = b"") -> None:
        """The last bytes; after it a leave no longer counts."""

    @property
    def blocked_since_us(self) -> int | None:
        """Since when a write has been waiting for the client, on the monotonic clock."""

    def give_up(self) -> None:
        """Stop waiting for a client that takes no bytes."""
