"""A tenant's own limits, as who waits for a place asks them."""

from dataclasses import replace
from typing import Protocol, TypeVar
from uuid import uuid4

from gateway.domain.admission import Demand
from gateway.errors import InvalidRequest, LimitReached, QuotaExceeded, WeirError
from gateway.serving.authenticate import Caller
from gateway.serving.leases import Leases

Admitted_co = TypeVar("Admitted_co", covariant=True)


class Sight(Protocol):
    """A look at the limits, which takes nothing."""

    async def has_room(self) -> bool:
        """Whether there was room for the request a moment ago. Raises WeirError where nobody
        knows."""

    async def refusal(self, *, of_budget: bool = False) -> WeirError | None:
        """What the limits would tell it now, the month's budget left out unless `of_budget`; None
        where they have room, or nobody knows."""


class Scopes(Sight, Protocol[Admitted_co]):
    """The tenant's scopes of one request: the second of the two atomic steps."""

    async def admit(self) -> Admitted_co:
        """Take all of them or none. Raises LimitReached where one has no room for now; then the
        request may be parked. Whatever else it raises ends the request."""


class LeaseSight:
    """Implements `Sight` on leases: the demand is what `admit` will ask for."""

    def __init__(self, leases: Leases, caller: Caller, model: str, demand: Demand) -> None:
        self._leases = leases
        self._caller = caller
        self._model = model
        self._demand = demand

    async def has_room(self) -> bool:
        """See `Sight`. Raises Overloaded(admission_unavailable)."""
        return await self._leases.has_room(self._caller, self._model, self._demand)

    async def refusal(self, *, of_budget: bool = False) -> WeirError | None:
        """See `Sight`. It comes from a real decision, under an id of its own, since one that was
        settled is never decided on again; should it be granted it is given back at once. A budget
        cannot be looked at first."""
        if not self._leases.reachable if of_budget else await self.has_room():
            return None
        asked, own = self._demand, uuid4().hex
        demand = replace(asked, request_id=own, cost_pico=asked.cost_pico if of_budget else 0)
        try:
            lease, _ = await self._leases.acquire(self._caller, self._model, demand)
        except (LimitReached, InvalidRequest) as refused:
            return refused
        except QuotaExceeded as refused:
            return refused if of_budget else None
        await self._leases.settle(lease, actual_tokens=0, ran=False)
        return None
