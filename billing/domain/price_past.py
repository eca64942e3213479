"""What a new price would take the place of: only where nothing held may one begin in the past.

The database has the same rule for itself (migration 0013).
"""

from collections.abc import Collection, Iterable

from billing.domain.price_book import Price


def is_of_line(price: Price, tenant_id: str | None, plan: str | None, of: str | None) -> bool:
    """Whether it is of that tenant's, plan's or the list's line of that class, its model, provider
    and currency being the same."""
    return (price.tenant_id, price.plan, price.request_class) == (tenant_id, plan, of)


def replaced(
    prices: Iterable[Price],
    *,
    tenant_id: str | None,
    plan: str | None,
    request_class: str | None,
    plans: Collection[str],
    begins_ms: int,
    until_ms: int,
) -> Price | None:
    """One of `prices`, all of one model, provider and currency, that may hold at some instant from
    `begins_ms` until before `until_ms` for a request that a price of the line named here would be
    for, were there none. `until_ms` is not after the next price of that line.

    `plans` are those that the tenant was ever on. A row that withdraws counts as what it ends.
    """
    line = (tenant_id, plan)
    for price in prices:
        if price.effective_from_ms >= until_ms:
            continue
        classes = {price.request_class, request_class} - {None}
        if len(classes) > 1:
            continue
        if (price.tenant_id, price.plan) == line:
            is_before = price.effective_from_ms <= begins_ms
            is_behind = price.request_class is None
            if is_before if price.request_class == request_class else is_behind:
                return price
        elif (price.tenant_id, price.plan) == (None, None) or (
            tenant_id is not None and price.tenant_id is None and price.plan in plans
        ):
            return price
    return None
