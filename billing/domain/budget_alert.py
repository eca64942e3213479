"""When a budget of a month is worth a word: at four fifths of it, and at the whole."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import msgspec

THRESHOLDS_PERCENT = (80, 100)


class Budget(NamedTuple):
    """What a month may cost: of a tenant, of one of its keys, of one model of either."""

    tenant_id: str
    api_key_id: str | None
    model: str | None
    limit_pico: int


class Spent(NamedTuple):
    """What a key of the tenant cost with one model, and how many of its requests are in no amount,
    since they have no price."""

    api_key_id: str
    model: str
    pico: int
    unpriced_requests: int = 0


class Crossed(NamedTuple):
    """A threshold that is reached."""

    budget: Budget
    threshold_percent: int
    spent_pico: int
    unpriced_requests: int


class BudgetAlert(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold of a budget, as it was when somebody first saw it reached. `delivered_at`: when
    the webhook took it."""

    id: int
    tenant_id: str
    api_key_id: str | None
    model: str | None
    month: str
    period_start: datetime
    period_end: datetime
    currency: str
    threshold_percent: int
    limit_pico: int
    spent_pico: int
    unpriced_requests: int
    noticed_at: datetime
    delivered_at: datetime | None


def crossed(budgets: Iterable[Budget], spent: Iterable[Spent]) -> list[Crossed]:
    """Every threshold that is reached, of each budget the lower first. Nothing is reached where
    nothing was spent: a budget of 0 is a closed door, and no alarm until something came through.
    `spent` is of one tenant, as `budgets` are."""
    costs = list(spent)
    found: list[Crossed] = []
    for budget in budgets:
        own = [
            each
            for each in costs
            if budget.api_key_id in {None, each.api_key_id} and budget.model in {None, each.model}
        ]
        pico = sum(each.pico for each in own)
        unpriced = sum(each.unpriced_requests for each in own)
        found += [
            Crossed(budget, percent, pico, unpriced)
            for percent in THRESHOLDS_PERCENT
            if pico > 0 and pico * 100 >= budget.limit_pico * percent
        ]
    return found
