"""Budgets of tenants and keys as alerts see them, and alerts as they are shown."""

from collections.abc import Iterator

from billing.domain.budget_alert import Budget, BudgetAlert
from billing.domain.money import parse_amount, show_amount
from gateway.domain.instants import ms_of, shown
from gateway.domain.tenant import Limits


def budgets_of(
    tenant_id: str, currency: str, limits: Limits, *, api_key_id: str | None = None
) -> Iterator[Budget]:
    """The budgets of a tenant's limits, or of one of its keys', for all models and for one. Raises
    ValueError where one is no amount of the currency; what is written is checked."""
    amounts = {None: limits.monthly_budget} | {
        model: own.monthly_budget for model, own in limits.models.items()
    }
    for model, amount in amounts.items():
        if amount is not None:
            yield Budget(tenant_id, api_key_id, model, parse_amount(amount, currency))


def whose(alert: BudgetAlert) -> str:
    """Whose budget it is, in a sentence."""
    key = "" if alert.api_key_id is None else f", key {alert.api_key_id}"
    model = "" if alert.model is None else f", model {alert.model}"
    return f"tenant {alert.tenant_id}{key}{model}"


def alert_view(alert: BudgetAlert) -> dict[str, object]:
    """An alert as people and programs see it: amounts as texts, times as RFC 3339."""
    return {
        "id": alert.id,
        "tenant_id": alert.tenant_id,
        "api_key_id": alert.api_key_id,
        "model": alert.model,
        "month": alert.month,
        "period_start": shown(ms_of(alert.period_start)),
        "period_end": shown(ms_of(alert.period_end)),
        "threshold_percent": alert.threshold_percent,
        "limit": show_amount(alert.limit_pico, alert.currency),
        "spent": show_amount(alert.spent_pico, alert.currency),
        "currency": alert.currency,
        "unpriced_requests": alert.unpriced_requests,
        "noticed_at": shown(ms_of(alert.noticed_at)),
        "delivered_at": shown(ms_of(alert.delivered_at)),
    }
