"""Fair shares by virtual token counters (Sheng et al., "Fairness in Serving Large Language Models",
arXiv 2401.00588).

A tenant's counter rises by what it is served, divided by its weight; whoever has the lowest goes
next. Who comes back from idleness is lifted to the lowest of those that are active, so nobody saves
up. Each band has counters of its own: batch that filled idle capacity costs its tenant no
interactive turn.
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
    idle: dict[str, int] = field(default_factory=dict)
    """Of tenants that were served more than the least active one has been."""
    departed: int = 0
    """Of the tenant that was active last."""

    @property
    def floor(self) -> int:
        """What a tenant that becomes active is lifted to."""
        return min(self.active.values(), default=self.departed)

    def activate(self, tenant: str) -> None:
        """It waits or runs from now on."""
        if tenant not in self.active:
            floor = self.floor
            self.active[tenant] = max(self.idle.pop(tenant, 0), floor)
            self._forget()

    def charge(self, tenant: str, cost: int, weight: int) -> None:
        """It is served so much (weighted tokens), or so much less. Of an active tenant."""
        self.active[tenant] += cost * UNITS // weight
        self._forget()

    def deactivate(self, tenant: str) -> None:
        """It neither waits nor runs."""
        counter = self.active.pop(tenant)
        self.departed = counter
        self.idle[tenant] = counter
        self._forget()

    def _forget(self) -> None:
        """Who would be lifted anyway need not be remembered."""
        if self.idle:
            floor = self.floor
            self.idle = {name: counter for name, counter in self.idle.items() if counter > floor}
