"""Prometheus metrics of alerts about budgets."""

from prometheus_client import Counter

ALERTS = Counter(
    "weir_budget_alerts_total",
    "Thresholds of monthly budgets that this gateway was the first to see reached, in percent.",
    ["threshold"],
)
DELIVERIES = Counter(
    "weir_budget_alert_deliveries_total",
    "Attempts of this gateway to hand an alert to the webhook: taken, or failed.",
    ["result"],
)
