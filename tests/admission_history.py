"""Histories of one tenant on the specification of admission, and what follows from a history alone:
a witness that shares no code with what it judges."""

from collections.abc import Callable
from dataclasses import dataclass, field

from memory_ports import START_MS, TTL_MS

from gateway.domain import admission
from gateway.domain.admission import (
    Beginning,
    Demand,
    Granted,
    Lease,
    MoneyUnknown,
    Paused,
    Refused,
    Settled,
    TenantState,
)
from gateway.domain.scopes import ScopeLimits

MONTH = "2027-01"
PLACES = (("k1", "m1"), ("k1", "m2"), ("k2", "m1"))

Decision = Granted | Refused | Paused | MoneyUnknown


def scope_names(place: int) -> tuple[str, ...]:
    """The four scopes of a request from one of the PLACES."""
    key, model = PLACES[place % len(PLACES)]
    return ("tenant", f"key:{key}", f"model:{model}", f"key:{key}/model:{model}")


@dataclass
class Request:
    """One request that was granted, as whoever sent it remembers it."""

    rid: str
    scopes: tuple[str, ...]
    sequences: int
    reserved: int
    cost: int
    second: int
    granted_ms: int
    renewed_ms: int
    settled_ms: int | None = None
    used: int | None = None
    spent: int = 0

    def is_live(self, now_ms: int) -> bool:
        """Whether it holds its sequences: not settled, and renewed less than one lease ago."""
        return self.settled_ms is None and now_ms < self.renewed_ms + TTL_MS


@dataclass
class History:
    """What was asked, and what came of it. `limits` are those that were set last."""

    limits: dict[str, ScopeLimits] = field(default_factory=dict)
    state: TenantState = field(default_factory=TenantState)
    now_ms: int = START_MS
    requests: list[Request] = field(default_factory=list)
    first_limits: dict[str, ScopeLimits] = field(default_factory=dict)
    asked: int = 0

    def limit(self, scope: str, *limits: int | None) -> None:
        """Set a scope's sequences, tokens a minute, requests a minute and budget."""
        version = 1 + max((known.version for known in self.limits.values()), default=0)
        self.limits[scope] = ScopeLimits(scope, version, *limits)

    def offered(self, place: int, *, stale: bool = False) -> tuple[ScopeLimits, ...]:
        """The limits as a gateway knows them that has heard of all changes, or of none."""
        known = self.first_limits if stale else self.limits
        none = {name: ScopeLimits(name, 0, None, None, None) for name in scope_names(place)}
        return tuple(known.get(name, none[name]) for name in scope_names(place))

    def acquire(
        self, place: int, sequences: int, tokens: int, cost: int = 0, *, stale: bool = False
    ) -> Decision:
        """Ask for a request with a maximum, and remember it where it is granted."""
        self.asked += 1
        rid = f"{self.asked:032x}"
        demand = Demand(rid, sequences, tokens, tokens, cost, MONTH)
        scopes = self.offered(place, stale=stale)
        decision = admission.acquire(self.state, demand, scopes, now_ms=self.now_ms, ttl_ms=TTL_MS)
        if isinstance(decision, Granted):
            self.requests.append(
                Request(
                    rid,
                    scope_names(place),
                    sequences,
                    decision.reserved_tokens,
                    cost,
                    decision.second,
                    self.now_ms,
                    self.now_ms,
                )
            )
        return decision

    def settle(self, request: Request, used: int, spent: int = 0) -> Settled:
        """End a request; the first time counts."""
        found = admission.settle(
            self.state, request.rid, actual_tokens=used, ran=True, now_ms=self.now_ms,
            actual_cost_pico=spent,
        )  # fmt: skip
        if request.settled_ms is None:
            request.settled_ms, request.used, request.spent = self.now_ms, used, spent
        return found

    def renew(self, request: Request, *, carried: bool = False) -> None:
        """Renew one request's lease."""
        lease = Lease(
            request.sequences, request.reserved, request.second, request.scopes, 0, request.cost,
            MONTH, carried,
        )  # fmt: skip
        admission.renew(self.state, {request.rid: lease}, now_ms=self.now_ms, ttl_ms=TTL_MS)
        if request.settled_ms is None:
            request.renewed_ms = self.now_ms

    def look(self) -> None:
        """Let the store see what time it is."""
        admission.observe(self.state, (), now_ms=self.now_ms)

    def tell(self, scope: str) -> None:
        """Offer a scope's limits to the store, as any look does."""
        admission.observe(self.state, (self.limits[scope],), now_ms=self.now_ms)

    def lose(self) -> None:
        """The store comes back empty, now."""
        beginning = Beginning(self.now_ms + TTL_MS, self.now_ms + 61_000)
        self.state = TenantState(beginning=beginning)

    def live(self) -> list[Request]:
        """The requests that hold something now, by the history alone."""
        return [request for request in self.requests if request.is_live(self.now_ms)]

    def sum_of(self, scope: str, of: Callable[[Request], int]) -> int:
        """A sum over the live requests of a scope."""
        return sum(of(request) for request in self.live() if scope in request.scopes)
