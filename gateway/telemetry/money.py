"""Prometheus metrics of what requests cost. A display only: floats of whole units of a currency, no
bill is made of them; what is owed is in the usage records."""

from prometheus_client import Counter

from billing.domain.usage_record import UsageRecord

_PICO = 10**12
_US_DOLLARS = "USD"

COST = Counter(
    "weir_cost_total",
    "INV-7: what ended requests cost their tenants, in units of the currency.",
    ["currency", "request_class", "provider"],
)
LIST_COST = Counter(
    "weir_list_cost_total",
    "What the price book makes of the tokens of ended requests, billable or not, in units of the "
    "currency.",
    ["currency", "request_class", "provider"],
)
UNBILLED_COST = Counter(
    "weir_unbilled_cost_total",
    "Of that what nobody pays for, in units of the currency, by how the request ended.",
    ["currency", "outcome"],
)
HOSTED_COST = Counter(
    "weir_hosted_cost_total",
    "What hosted providers charge the operator for their streams, in units of the currency; what "
    "none has told is not in it.",
    ["currency", "provider"],
)
UNPRICED = Counter(
    "weir_unpriced_requests_total",
    "INV-7: billable requests that had no price: they are shown, and hold up the invoice.",
    ["model", "provider"],
)


def observe_cost(record: UsageRecord) -> None:
    """Count what an ended request costs, and costs us."""
    if record.cost_pico is None:
        UNPRICED.labels(record.model, record.provider).inc()
    if record.currency is not None:
        _observe_rated(record, record.currency)
    for attempt in record.attempts:
        if attempt.provider_cost_pico:
            HOSTED_COST.labels(_US_DOLLARS, attempt.provider).inc(
                attempt.provider_cost_pico / _PICO
            )


def _observe_rated(record: UsageRecord, currency: str) -> None:
    if record.cost_pico:
        COST.labels(currency, record.request_class, record.provider).inc(record.cost_pico / _PICO)
    if record.list_cost_pico:
        cost = record.list_cost_pico / _PICO
        LIST_COST.labels(currency, record.request_class, record.provider).inc(cost)
        if not record.billable:
            UNBILLED_COST.labels(currency, record.outcome.value).inc(cost)
