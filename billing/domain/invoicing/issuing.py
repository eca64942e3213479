"""What an invoice is issued with, and what stands in its way."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from billing.domain.invoicing.party import Customer
from billing.domain.invoicing.tax import Tax

PAYMENT_TERMS_DAYS = 30
"""Where a tenant has none of its own."""


class Billed(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant as it is billed now."""

    customer: Customer
    currency: str
    time_zone: str
    """Whose calendar months are."""
    tax: Tax = Tax()
    payment_terms_days: int = PAYMENT_TERMS_DAYS
    notes: tuple[str, ...] = ()
    """As printed below the total."""


class Obstacle(StrEnum):
    """Why an invoice is not issued now."""

    PERIOD_OPEN = "period_open"
    NO_SELLER = "no_seller"
    UNPRICED = "unpriced"
    """Records that are paid for and have no price."""
    NOT_FINAL = "not_final"
    """Records that another gateway gave, whose own account may still come."""
    GATEWAY_BEHIND = "gateway_behind"
    """A journal that may still bring a record of the period."""
    STILL_OPEN = "still_open"
    """Requests of the period that run, or whose end is on its way."""
    UNBILLED = "unbilled"
    """Use of its month in another currency, of which there is no invoice."""
    DEAD_LETTERS = "dead_letters"
    """Records that Postgres refused and that wait for a person."""
    NUMBER_GIVEN = "number_given"
    """The number that is next is on an invoice that a customer has and Postgres has lost."""
    ROLLUPS_DIFFER = "rollups_differ"
    LINES_DISAGREE = "lines_disagree"


OVERRIDDEN = frozenset(
    {
        Obstacle.NOT_FINAL,
        Obstacle.GATEWAY_BEHIND,
        Obstacle.STILL_OPEN,
        Obstacle.UNBILLED,
        Obstacle.DEAD_LETTERS,
    }
)
"""What finance may pass over, on record: nothing is billed wrongly for it, and what comes later is
an adjustment of the next invoice, or has an invoice of its own currency."""


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in the way. `subject` is which (a model, a gateway), `count` how many."""

    obstacle: Obstacle
    subject: str
    count: int = 1
    what: str

    @property
    def can_be_overridden(self) -> bool:
        """Whether finance may issue nevertheless."""
        return self.obstacle in OVERRIDDEN


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """Finance's word that an invoice is issued although something may still come."""

    reason: str


class IssueRefused(ValueError):
    """An invoice that is not issued now, with everything that is known to stand in the way."""

    def __init__(self, blockers: Iterable[Blocker]) -> None:
        self.blockers = tuple(blockers)
        super().__init__("; ".join(blocker.what for blocker in self.blockers))


def left(blockers: Iterable[Blocker], override: Override | None) -> tuple[Blocker, ...]:
    """What still stands in the way, given the override."""
    return tuple(
        blocker for blocker in blockers if override is None or not blocker.can_be_overridden
    )
