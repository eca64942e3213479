"""Who waits in one band: tenant by virtual token counter, then earliest deadline."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from gateway.domain.queue.fairness import Counters
from gateway.domain.queue.prediction import Backlog, ahead_of
from gateway.domain.queue.tickets import Ticket

OF_A_TENANT = 16
"""Tickets of one tenant that are looked at in a row."""
TENANTS_AHEAD = 64
"""Tenants that a prediction looks at: with more it may be too short, never too long."""


@dataclass
class Line:
    """One band. `waiting` has the tickets of each tenant in their order."""

    counters: Counters = field(default_factory=Counters)
    waiting: dict[str, list[Ticket]] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    """Of each tenant that waits, as its latest ticket has it."""
    running: dict[str, int] = field(default_factory=dict)
    """Places of each tenant."""

    def __len__(self) -> int:
        return sum(len(tickets) for tickets in self.waiting.values())

    @property
    def tokens(self) -> int:
        """Weighted tokens that wait."""
        return sum(ticket.cost for tickets in self.waiting.values() for ticket in tickets)

    def add(self, ticket: Ticket, *, came_back: bool = False) -> None:
        """It waits; `came_back`: its place, which still runs, was taken back."""
        self.counters.wait(ticket.tenant, came_back=came_back)
        tickets = self.waiting.setdefault(ticket.tenant, [])
        tickets.append(ticket)
        tickets.sort(key=lambda each: each.order)
        self.weights[ticket.tenant] = ticket.weight

    def remove(self, ticket: Ticket) -> None:
        """It waits no more, and was not granted."""
        self._take_out(ticket)
        self._waited(ticket.tenant)
        self._rest(ticket.tenant)

    def grant(self, ticket: Ticket) -> None:
        """It runs, and its tenant is charged what it is expected to cost."""
        self._take_out(ticket)
        self.counters.charge(ticket.tenant, ticket.cost, ticket.weight)
        self._waited(ticket.tenant)
        self.running[ticket.tenant] = self.running.get(ticket.tenant, 0) + 1

    def resume(self, ticket: Ticket) -> None:
        """It was found to run: a store that forgot it, and its charge, takes both up."""
        self.counters.activate(ticket.tenant)
        self.counters.charge(ticket.tenant, ticket.cost, ticket.weight)
        self.running[ticket.tenant] = self.running.get(ticket.tenant, 0) + 1

    def end(self, ticket: Ticket, actual_cost: int, *, came_back: bool = False) -> None:
        """It runs no more, and this is what it cost; `came_back`: its place was asked back."""
        self.counters.correct(
            ticket.tenant, ticket.cost, actual_cost, ticket.weight, came_back=came_back
        )
        self.running[ticket.tenant] -= 1
        if not self.running[ticket.tenant]:
            del self.running[ticket.tenant]
        self._rest(ticket.tenant)

    def candidates(self) -> Iterator[Ticket]:
        """Whom to look for room for, in order: where the first of a tenant is too large for what is
        free, one behind it may fit."""
        for name in self._tenants():
            yield from self.waiting[name][:OF_A_TENANT]

    def of_all(self) -> Iterator[Ticket]:
        """Whoever waits, in no order."""
        return (ticket for tickets in self.waiting.values() for ticket in tickets)

    def promoted(self, now_ms: int) -> Iterator[Ticket]:
        """Those that would miss their deadline if they waited for their turn."""
        late = [
            ticket
            for tickets in self.waiting.values()
            for ticket in tickets
            if ticket.is_promoted(now_ms)
        ]
        return iter(sorted(late, key=lambda each: (each.promote_ms, each.id)))

    def own_ahead(self, ticket: Ticket) -> int:
        """Its tenant's own that go before one that waits in it."""
        return sum(each.order < ticket.order for each in self.waiting[ticket.tenant])

    def ahead(self, ticket: Ticket) -> int:
        """Weighted tokens of this band that go before one that waits in it. Its tenant's own are
        taken for as large as they are on average: nobody adds them up."""
        waiting = len(self.waiting[ticket.tenant])
        own = self._tokens_of(ticket.tenant) * self.own_ahead(ticket) // waiting
        names = (name for name in self._tenants() if name != ticket.tenant)
        others = (
            Backlog(self.counters.of(name), self._tokens_of(name), self.weights[name])
            for name in islice(names, TENANTS_AHEAD)
        )
        return ahead_of(self.counters.of(ticket.tenant), own, ticket.weight, others)

    def _tokens_of(self, tenant: str) -> int:
        return sum(each.cost for each in self.waiting[tenant])

    def _tenants(self) -> list[str]:
        """Those that wait, whoever has been served least first."""
        return sorted(self.waiting, key=self.counters.order)

    def _take_out(self, ticket: Ticket) -> None:
        tickets = self.waiting[ticket.tenant]
        tickets.remove(ticket)
        if not tickets:
            del self.waiting[ticket.tenant], self.weights[ticket.tenant]

    def _waited(self, tenant: str) -> None:
        if tenant not in self.waiting:
            self.counters.rest(tenant)

    def _rest(self, tenant: str) -> None:
        if tenant not in self.waiting and tenant not in self.running:
            self.counters.deactivate(tenant)
