"""Fair shares by virtual token counters (Sheng et al., "Fairness in Serving Large Language Models",
arXiv 2401.00588).

A tenant's counter rises by what it is served, divided by its weight; whoever has the lowest goes
next. Who begins to wait is lifted to the lowest of those that wait, so nobody saves up: neither who
was idle, nor who ran something and asked for no more. Each band has counters of its own: batch that
filled idle capacity costs its tenant no interactive turn.
"""

from dataclasses import dataclass, field

PROMPT_WEIGHT = 1
OUTPUT_WEIGHT = 2
UNITS = 1_000
"""Of a counter in a weighted token at weight 1, so that weights divide whole numbers."""


def weighted_tokens(*, uncached_prompt_tokens: int, output_tokens: int) -> int:
    """What a request costs in the sense of fairness."""
    return PROMPT_WEIGHT * uncached_prompt_tokens + OUTPUT_WEIGHT * output_tokens


@dataclass
class Counters:
    """The counters of one band. Active is who waits or runs."""

    active: dict[str, int] = field(default_factory=dict)
    waits: set[str] = field(default_factory=set)
    """Of those that are active, who waits."""
    idle: dict[str, int] = field(default_factory=dict)
    """Of tenants that were served more than the least served that waits."""
    departed: int = 0
    """Of the tenant that waited last, when it ceased to."""

    @property
    def floor(self) -> int:
        """What a tenant that begins to wait is lifted to."""
        return min((self.active[name] for name in self.waits), default=self.departed)

    def activate(self, tenant: str) -> None:
        """It waits or runs from now on."""
        if tenant not in self.active:
            self.active[tenant] = max(self.idle.pop(tenant, 0), self.floor)

    def wait(self, tenant: str, *, came_back: bool = False) -> None:
        """It waits from now on. Who runs and only waits because a place was taken back has never
        ceased to: it is not lifted past what it was owed."""
        if tenant in self.waits:
            return
        if not (came_back and tenant in self.active):
            self.activate(tenant)
            self.active[tenant] = max(self.active[tenant], self.floor)
        self.waits.add(tenant)
        self._forget()

    def rest(self, tenant: str) -> None:
        """Nothing of it waits any more."""
        self.waits.discard(tenant)
        self.departed = self.active[tenant]
        self._forget()

    def charge(self, tenant: str, cost: int, weight: int) -> None:
        """It is served so much (weighted tokens). Of an active tenant."""
        self.active[tenant] += cost * UNITS // weight
        self._forget()

    def correct(self, tenant: str, expected: int, actual: int, weight: int) -> None:
        """It was charged what was expected, and was served this. Undoes a charge to the unit."""
        self.active[tenant] += actual * UNITS // weight - expected * UNITS // weight
        self._forget()

    def deactivate(self, tenant: str) -> None:
        """It neither waits nor runs."""
        self.idle[tenant] = self.active.pop(tenant)
        self._forget()

    def _forget(self) -> None:
        """Who would be lifted anyway need not be remembered."""
        if self.idle:
            floor = self.floor
            self.idle = {name: counter for name, counter in self.idle.items() if counter > floor}
