"""What a tenant sees of its limits, and an admin of all tenants' use."""

import asyncio
from collections.abc import Sequence

from billing.domain.money import show_amount
from gateway.domain.instants import shown
from gateway.domain.scopes import ScopeLimits, ScopeUse, scopes_of
from gateway.domain.tenant import Limits, ModelLimits, waiting_of
from gateway.errors import Overloaded
from gateway.serving.authenticate import Caller
from gateway.serving.limit_headers import committed_pico
from gateway.serving.month_now import MonthNow, month_now
from gateway.serving.ports import Ledger, LedgerUnavailable, MonthRebuild
from gateway.serving.queue_view import Json, Uses, own_queue, queued_of

REBUILD_S = 1.0
"""Who looks waits so long for a month's spend that the store does not know."""


def use_view(use: ScopeUse, month: MonthNow) -> Json:
    """One scope's limits and use. `null` is no limit; of money also what is not known now."""
    return {
        "max_sequences": use.limits.max_sequences,
        "sequences_running": use.sequences,
        "tpm": use.limits.tpm,
        "tokens_last_minute": use.tokens,
        "rpm": use.limits.rpm,
        "requests_last_minute": use.requests,
        "reset_ms": use.reset_ms,
        **_money_view(use, month),
    }


def own_view(limits: Limits | ModelLimits, use: ScopeUse, month: MonthNow) -> Json:
    """`use_view` with the limits that hold for each request alone, of which nothing is used up."""
    return {
        **use_view(use, month),
        "max_prompt_tokens": limits.max_prompt_tokens,
        "max_output_tokens": limits.max_output_tokens,
    }


def _money_view(use: ScopeUse, month: MonthNow) -> Json:
    """Amounts in the tenant's currency. What is spent and reserved is shown without a budget too,
    where the month is tracked because of another scope's."""

    def amount(pico: int | None) -> str | None:
        return None if pico is None else show_amount(pico, month.currency)

    budget, remaining = use.limits.budget_pico, None
    if budget is not None and use.spent_pico is not None:
        remaining = max(0, budget - committed_pico(use))
    return {
        "monthly_budget": amount(budget),
        "spent_this_month": amount(use.spent_pico),
        "reserved_this_month": amount(use.reserved_pico),
        "remaining_this_month": amount(remaining),
        "currency": month.currency,
        "month_resets_at": None if budget is None else shown(month.ends_at_ms),
    }


async def observed(
    ledger: Ledger,
    tenant_id: str,
    scopes: Sequence[ScopeLimits],
    month: MonthNow,
    months: MonthRebuild | None = None,
) -> tuple[ScopeUse, ...]:
    """Use now. Where a budget is in force and what the month has cost is not known, `months` is
    asked to bring it back, for a second at most. Raises LedgerUnavailable."""
    uses = await ledger.observe(tenant_id, scopes, month.key)
    if months is None or not any(
        use.limits.budget_pico is not None and use.spent_pico is None for use in uses
    ):
        return uses
    try:
        async with asyncio.timeout(REBUILD_S):
            known = await months.rebuild(tenant_id, month.key)
    except TimeoutError:
        return uses
    return await ledger.observe(tenant_id, scopes, month.key) if known else uses


async def limits_view(
    caller: Caller,
    ledger: Ledger,
    *,
    now_ms: int,
    uses: Uses,
    months: MonthRebuild | None = None,
) -> Json:
    """The body of `GET /v1/limits`: tenant, key, each model that is narrowed, and the queues of
    those that the key may use, `uses`. The queues know requests of tenants, not of keys.

    Raises Overloaded(admission_unavailable) where the store cannot be reached.
    """
    month = month_now(caller.tenant, now_ms)
    tenant, key, none = caller.tenant.limits, caller.key.limits, ModelLimits()
    names = sorted({*tenant.models, *key.models})
    scopes = list(scopes_of(caller.tenant, caller.key, "")[:2])
    for name in names:
        scopes += scopes_of(caller.tenant, caller.key, name)[2:]
    try:
        scoped = await observed(ledger, caller.tenant.id, scopes, month, months)
    except LedgerUnavailable as error:
        raise Overloaded(
            "limits cannot be read at the moment", code="admission_unavailable"
        ) from error
    queued = queued_of(caller.tenant.id, uses)
    return {
        "object": "limits",
        "tenant": {
            **own_view(tenant, scoped[0], month),
            **_queue_view(waiting_of(tenant).max_queued, queued),
        },
        "key": {**own_view(key, scoped[1], month), **_queue_view(key.max_queued, None)},
        "models": {
            name: {
                "tenant": own_view(tenant.models.get(name, none), scoped[2 * i + 2], month),
                "key": own_view(key.models.get(name, none), scoped[2 * i + 3], month),
            }
            for i, name in enumerate(names)
        },
        "queue": own_queue(caller.tenant.id, tenant.weight, uses, now_ms=now_ms),
    }


def _queue_view(max_queued: int | None, queued: int | None) -> Json:
    return {"max_queued": max_queued, "sequences_queued": queued}
