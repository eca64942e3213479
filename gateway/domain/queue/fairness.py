"""Fair shares by virtual token counters (Sheng et al., "Fairness in Serving Large Language Models",
arXiv 2401.00588).

A tenant's counter rises by what it is served, divided by its weight; whoever has the lowest goes
next. Who begins to wait is lifted to the lowest of those that wait, so nobody saves up: neither who
was idle, nor who ran something and asked for no more. Each band has counters of its own: batch that
filled idle capacity costs its tenant no interactive turn.

What runs is charged as it is expected, and corrected when it ends. So tenants that wait already go
down again, past whoever was lifted to what they were charged. Who was lifted is therefore a
*newcomer* until it is charged: all newcomers stand where the lowest of the others is or was since,
and go first, whoever came first before the rest. It is a jump of one request, which is then charged
from there, and from what its tenant was served itself: so a tenant that comes again and again gains
nothing by it, and is no newcomer before the lowest was served past it.
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
    """Of a newcomer what it was before it was lifted."""
    waits: set[str] = field(default_factory=set)
    """Of those that are active, who waits."""
    newcomers: list[str] = field(default_factory=list)
    """Of those that wait, who was lifted and not charged since; in the order they came in."""
    level: int = 0
    """Where all newcomers stand: none that waits is below, but one whose place was taken back."""
    idle: dict[str, int] = field(default_factory=dict)
    """Of tenants that were served no less than the least served that waits may turn out to be."""
    expected: int = 0
    """What runs was charged: when it ends as much may be taken back."""
    departed: int = 0
    """Of the tenant that waited last, when it ceased to."""

    @property
    def floor(self) -> int:
        """What a tenant that begins to wait is lifted to."""
        return min((self.of(name) for name in self.waits), default=self.departed)

    def of(self, tenant: str) -> int:
        """Where one that is active stands."""
        return self.level if tenant in self.newcomers else self.active[tenant]

    def order(self, tenant: str) -> tuple[int, int, str]:
        """The lower the earlier is the turn of one that waits."""
        if tenant in self.newcomers:
            return self.level, self.newcomers.index(tenant), tenant
        return self.active[tenant], len(self.newcomers), tenant

    def activate(self, tenant: str) -> None:
        """It runs from now on, if it did not wait or run before."""
        if tenant not in self.active:
            self.active[tenant] = max(self.idle.pop(tenant, 0), self.floor)

    def wait(self, tenant: str, *, came_back: bool = False) -> None:
        """It waits from now on. Who runs and only waits because a place was taken back has never
        ceased to: it is not lifted past what it was owed."""
        if tenant in self.waits:
            return
        if not (came_back and tenant in self.active):
            floor = self.floor
            own = self.active.setdefault(tenant, self.idle.pop(tenant, 0))
            if own < floor:
                self.level = floor
                self.newcomers.append(tenant)
        self.waits.add(tenant)
        self._forget()

    def rest(self, tenant: str) -> None:
        """Nothing of it waits any more."""
        self.waits.discard(tenant)
        self.departed = self.of(tenant)
        if tenant in self.newcomers:
            self.newcomers.remove(tenant)
        self._forget()

    def charge(self, tenant: str, cost: int, weight: int) -> None:
        """It is served so much (weighted tokens). Of an active tenant."""
        if tenant in self.newcomers:
            self.active[tenant] = max(self.active[tenant], self.level)
            self.newcomers.remove(tenant)
        self.active[tenant] += cost * UNITS // weight
        self.expected += cost * UNITS // weight
        self._forget()

    def correct(
        self, tenant: str, expected: int, actual: int, weight: int, *, came_back: bool = False
    ) -> None:
        """It was charged what was expected, and was served this. Undoes a charge to the unit. Who
        was asked to give its place back has its turn again, before newcomers too."""
        self.active[tenant] += actual * UNITS // weight - expected * UNITS // weight
        self.expected -= expected * UNITS // weight
        if tenant in self.waits and tenant not in self.newcomers and not came_back:
            self.level = min(self.level, self.active[tenant])
        self._forget()

    def deactivate(self, tenant: str) -> None:
        """It neither waits nor runs."""
        self.idle[tenant] = self.active.pop(tenant)
        self._forget()

    def _forget(self) -> None:
        """Who would be lifted anyway need not be remembered, whatever those that wait were charged
        too much: else it came again as one that was served nothing, each time. Who stands where
        those that wait do was a newcomer there already."""
        if self.idle:
            least = self.floor - self.expected
            self.idle = {name: counter for name, counter in self.idle.items() if counter >= least}
