"""Prices, each from an instant on until the next of its own line.

A line is of one model, provider and currency, and of a tenant, of a plan or of neither (the list),
and of one class or of both. A price is never changed and never taken back: what follows it begins
later. A line of a tenant, a plan or a class ends with a row that is `withdrawn`.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from billing.domain.price_lines import Timeline, layered

PRICE_PICO_MAX = 8 * 10**12
"""Pico-units of the currency per token: eight whole units per token, which are 8 * 10**6 a million
tokens: some 300 dollars in dong, 500 in rupiah. A request of TOKENS_COVERED at the dearest prices
costs what a column of 64 bits holds."""
TOKENS_COVERED = 2**20
"""Tokens of one request, prompt and output together."""
REQUEST_PICO_MAX = 10**17
"""Pico-units per request: a hundred thousand whole units."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What one token costs, in pico-units of `currency` (so micro-units per million tokens)."""

    id: int
    model: str
    provider: str
    """Who serves it: `self`, or `hosted:<name>`."""
    currency: str
    tenant_id: str | None = None
    plan: str | None = None
    """Whose price it is: a tenant's, that of the tenants on a plan, or with neither everybody's."""
    request_class: str | None = None
    """None: of both classes, where a class has no price of its own."""
    input_pico: int
    cached_input_pico: int | None = None
    """None: a cached prompt token costs what any prompt token costs."""
    output_pico: int
    reasoning_pico: int | None = None
    """None: reasoning tokens, which are output tokens, cost what any output token costs."""
    request_pico: int = 0
    """Of a request, whatever its tokens."""
    effective_from_ms: int
    """Unix milliseconds; it holds for requests that are admitted at or after it."""
    withdrawn: bool = False
    """Its line has no price from then on: the next one holds. Nothing is rated at it."""


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """The plan that a tenant is on from an instant on; None: none."""

    tenant_id: str
    plan: str | None
    effective_from_ms: int


_ByClass = Mapping[str | None, Timeline[Price]]
"""What holds for each class that has a price of its own, and at None for the others."""


class _Lines(NamedTuple):
    """Every price of one thing."""

    listed: _ByClass
    of_tenants: Mapping[str, _ByClass]
    of_plans: Mapping[str, _ByClass]
    begins_ms: list[int]
    """When anything of it begins or ends, in order."""


class PriceBook:
    """Every price, and which plan each tenant is on. It does not change: what learns of a price
    makes a new book."""

    def __init__(self, prices: Iterable[Price] = (), members: Iterable[Membership] = ()) -> None:
        """Raises ValueError where two prices of one line, or two plans of one tenant, begin at the
        same instant: which of them holds would be chance."""
        things: defaultdict[tuple[str, str, str], list[Price]] = defaultdict(list)
        for price in prices:
            things[price.model, price.provider, price.currency].append(price)
        self._lines = {thing: _lines_of(some) for thing, some in things.items()}
        self._plans = _plans_of(members)

    def price_at(
        self,
        model: str,
        provider: str,
        currency: str,
        at_ms: int,
        *,
        tenant_id: str | None = None,
        request_class: str | None = None,
    ) -> Price | None:
        """The price that holds for a request admitted at `at_ms` (Unix milliseconds), or None where
        there is none: then the request is unpriced, never free. Names match whole, never in part,
        and no other provider's or currency's price stands in.

        The tenant's own comes first, then that of the plan that it is on at that instant, then the
        list's; of each the class's own before that of both. Without a tenant it is the list's,
        without a class that of both.
        """
        lines = self._lines.get((model, provider, currency))
        if lines is None:
            return None
        if tenant_id is not None:
            own = lines.of_tenants.get(tenant_id)
            price = None if own is None else _at(own, request_class, at_ms)
            if price is None and lines.of_plans:
                planned = lines.of_plans.get(self.plan_at(tenant_id, at_ms) or "")
                price = None if planned is None else _at(planned, request_class, at_ms)
            if price is not None:
                return price
        return _at(lines.listed, request_class, at_ms)

    def changes_within(
        self, model: str, provider: str, currency: str, since_ms: int, until_ms: int
    ) -> bool:
        """Whether any price of theirs, whosever it is, begins or ends from `since_ms` on and before
        `until_ms`."""
        lines = self._lines.get((model, provider, currency))
        return lines is not None and _any_within(lines.begins_ms, since_ms, until_ms)

    def plan_changes_within(self, tenant_id: str, since_ms: int, until_ms: int) -> bool:
        """Whether the tenant goes to another plan, or to none, within that time."""
        plans = self._plans.get(tenant_id)
        return plans is not None and _any_within(plans.begins_ms, since_ms, until_ms)

    def plan_at(self, tenant_id: str, at_ms: int) -> str | None:
        """The plan that the tenant is on at that instant."""
        plans = self._plans.get(tenant_id)
        return None if plans is None else plans.at(at_ms)

    def listed_currencies(self, model: str, provider: str, at_ms: int) -> list[str]:
        """Currencies in which everybody has a price of theirs at that instant, by name."""
        return sorted(
            currency
            for (of_model, of_provider, currency) in self._lines
            if (of_model, of_provider) == (model, provider)
            and self.price_at(model, provider, currency, at_ms) is not None
        )


def _at(by_class: _ByClass, request_class: str | None, at_ms: int) -> Price | None:
    line = by_class.get(request_class)
    if line is None:
        line = by_class.get(None)
    return None if line is None else line.at(at_ms)


def _any_within(begins_ms: Sequence[int], since_ms: int, until_ms: int) -> bool:
    return bisect_left(begins_ms, since_ms) < bisect_left(begins_ms, until_ms)


def _lines_of(prices: Sequence[Price]) -> _Lines:
    listed: list[Price] = []
    of_tenants: defaultdict[str, list[Price]] = defaultdict(list)
    of_plans: defaultdict[str, list[Price]] = defaultdict(list)
    for price in prices:
        if price.tenant_id is not None:
            of_tenants[price.tenant_id].append(price)
        elif price.plan is not None:
            of_plans[price.plan].append(price)
        else:
            listed.append(price)
    return _Lines(
        begins_ms=sorted(price.effective_from_ms for price in prices),
        listed=_by_class(listed),
        of_tenants={tenant_id: _by_class(some) for tenant_id, some in of_tenants.items()},
        of_plans={plan: _by_class(some) for plan, some in of_plans.items()},
    )


def _by_class(prices: Iterable[Price]) -> _ByClass:
    changes: defaultdict[str | None, list[tuple[int, Price | None]]] = defaultdict(list)
    for price in prices:
        held = None if price.withdrawn else price
        changes[price.request_class].append((price.effective_from_ms, held))
    lines = {request_class: Timeline(some) for request_class, some in changes.items()}
    both = lines.get(None, Timeline[Price](()))
    return {
        request_class: line if request_class is None else layered(line, both)
        for request_class, line in lines.items()
    }


def _plans_of(members: Iterable[Membership]) -> dict[str, Timeline[str]]:
    changes: defaultdict[str, list[tuple[int, str | None]]] = defaultdict(list)
    for each in members:
        changes[each.tenant_id].append((each.effective_from_ms, each.plan))
    return {tenant_id: Timeline(some) for tenant_id, some in changes.items()}
