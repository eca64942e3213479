"""The money of a month, by scope: what was spent, and what is reserved for requests that run.

The store does not know what a month cost before it began to *track* it. So a month is begun (from
then on the store accounts for every request itself), what was spent before is summed up elsewhere,
and with that sum the month is *known*. Until then a budget admits nothing.

A request's money is in exactly one of the two: in the store's own account if its lease was held
when the month was begun or acquired later, in the sum if it was settled before. `accounted` names
the former, so that they can be left out of the sum.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

BEGIN_AGAIN_MS = 3_000
"""For so long after a month was begun nobody else begins it."""
FINISH_WITHIN_MS = 600_000
"""A month that is not known so long after it was begun has to be begun again."""


@dataclass
class Money:
    """Of one scope in one month, in pico-units of the tenant's currency; never negative."""

    spent_pico: int = 0
    reserved_pico: int = 0


@dataclass
class Month:
    """A month that is tracked since `at_ms`. While it is open, `settled` are the requests that were
    settled in it since then."""

    at_ms: int
    known: bool = False
    money: dict[str, Money] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)

    def is_open(self, now_ms: int) -> bool:
        """Whether what was spent before it was begun is still being summed up."""
        return not self.known and now_ms - self.at_ms < FINISH_WITHIN_MS

    def of(self, scope: str) -> Money:
        """The money of a scope; nothing where nothing was ever reserved or spent."""
        return self.money.get(scope, Money())


def reserve(months: dict[str, Month], month: str, scopes: Iterable[str], cost_pico: int) -> None:
    """Set money aside in every scope, where the month is tracked."""
    tracked = months.get(month)
    if tracked is not None and cost_pico:
        for scope in scopes:
            tracked.money.setdefault(scope, Money()).reserved_pico += cost_pico


def release(months: dict[str, Month], month: str, scopes: Iterable[str], cost_pico: int) -> None:
    """Free what `reserve` set aside."""
    reserve(months, month, scopes, -cost_pico)


def spend(
    month: Month, scopes: Iterable[str], cost_pico: int, request_id: str, now_ms: int
) -> None:
    """Account for what a settled request cost."""
    if month.is_open(now_ms):
        month.settled.add(request_id)
    if cost_pico:
        for scope in scopes:
            month.money.setdefault(scope, Money()).spent_pico += cost_pico


def hold_nothing(months: dict[str, Month]) -> None:
    """Free all that is reserved: there is no lease any more that it could be for."""
    for month in months.values():
        month.settled.clear()
        for money in month.money.values():
            money.reserved_pico = 0


def begin(
    months: dict[str, Month], month: str, now_ms: int, *, again: bool = False
) -> Month | None:
    """Track a month from nothing. Forgotten are those older than the one before it, and those of
    its own name, in another time zone or currency: what is spent from now on is not in them.

    None, and no change, where it was begun less than BEGIN_AGAIN_MS ago, but for `again`.
    """
    tracked = months.get(month)
    if tracked is not None and abs(now_ms - tracked.at_ms) < BEGIN_AGAIN_MS and not again:
        return None
    named = name_of(month)
    for key in [key for key in months if key < month_before(named) or name_of(key) == named]:
        del months[key]
    months[month] = Month(now_ms)
    return months[month]


def name_of(month: str) -> str:
    """Of a month's key: its name, as `2026-11`."""
    return month[:7]


def is_replaced_by(month: str, begun: str) -> bool:
    """Whether what is held in a month counts in the one that is begun: of the same name and
    currency, in another time zone."""
    return name_of(month) == name_of(begun) and _currency_of(month) == _currency_of(begun)


def _currency_of(month: str) -> str:
    return month.rpartition(":")[2]


def finish(
    months: dict[str, Month], month: str, at_ms: int, spent: Mapping[str, int], now_ms: int
) -> bool:
    """Add what a month cost before it was begun, by scope; it is known from now on.

    False, and no change, where it was not begun at `at_ms`, or is not open any more.
    """
    tracked = months.get(month)
    if tracked is None or tracked.at_ms != at_ms or not tracked.is_open(now_ms):
        return False
    for scope, pico in spent.items():
        tracked.money.setdefault(scope, Money()).spent_pico += pico
    tracked.known = True
    tracked.settled = set()
    return True


def month_before(month: str) -> str:
    """Of `2026-01`: `2025-12`."""
    year, number = int(month[:4]), int(month[5:])
    return f"{year:04d}-{number - 1:02d}" if number > 1 else f"{year - 1:04d}-12"
