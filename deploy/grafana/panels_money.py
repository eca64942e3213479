"""Money: what was used, what it costs whom, and whether all of it is written down."""

from panel import Dashboard, Panel, Query
from panels_capacity import SIMULATED

_DISPLAY = " For display: the bill is made of the records in Postgres."

MONEY = Dashboard(
    "weir-money",
    "money",
    "What was used and what it costs whom. For display: the bill is in Postgres.",
    (
        SIMULATED,
        Panel(
            "What do tenants owe for the time shown?",
            (Query("sum by (currency) (increase(weir_cost_total[$__range]))", "{{currency}}"),),
            "none",
            "In whole units of each currency." + _DISPLAY,
            kind="stat",
            width=6,
            height=4,
        ),
        Panel(
            "What did nobody pay for?",
            (
                Query(
                    "sum by (currency) (increase(weir_unbilled_cost_total[$__range]))",
                    "{{currency}}",
                ),
            ),
            "none",
            "At list prices: what failed on our side." + _DISPLAY,
            kind="stat",
            width=6,
            height=4,
        ),
        Panel(
            "What do hosted providers ask of us?",
            (
                Query(
                    "sum by (currency) (increase(weir_hosted_cost_total[$__range]))",
                    "{{currency}}",
                ),
            ),
            "none",
            "At the prices that are registered for them." + _DISPLAY,
            kind="stat",
            width=6,
            height=4,
        ),
        Panel(
            "What do tenants owe an hour?",
            (
                Query(
                    "3600 * sum by (currency, request_class)"
                    " (rate(weir_cost_total[$__rate_interval]))",
                    "{{currency}} {{request_class}}",
                ),
                Query(
                    "3600 * sum by (currency) (rate(weir_list_cost_total[$__rate_interval]))",
                    "{{currency}} at list prices",
                ),
            ),
            "none",
            "At the present rate." + _DISPLAY,
        ),
        Panel(
            "Who served it?",
            (
                Query(
                    "3600 * sum by (currency, provider) (rate(weir_cost_total[$__rate_interval]))",
                    "{{currency}} {{provider}}",
                ),
            ),
            "none",
            "What tenants owe an hour, by what served them: our own workers (self), or a provider.",
            stacked=True,
        ),
        Panel(
            "What does nobody pay for, and why?",
            (
                Query(
                    "3600 * sum by (currency, outcome)"
                    " (rate(weir_unbilled_cost_total[$__rate_interval]))",
                    "{{currency}} {{outcome}}",
                ),
            ),
            "none",
            "An hour, at list prices.",
            stacked=True,
        ),
        Panel(
            "What do hosted providers ask of us an hour?",
            (
                Query(
                    "3600 * sum by (currency, provider)"
                    " (rate(weir_hosted_cost_total[$__rate_interval]))",
                    "{{currency}} {{provider}}",
                ),
            ),
            "none",
            "At the present rate.",
            stacked=True,
        ),
        Panel(
            "How many tokens are used?",
            (Query("sum by (kind) (rate(weir_tokens_total[$__rate_interval]))", "{{kind}}"),),
            "none",
            "A second. Cached ones are among those of prompts.",
        ),
        Panel(
            "Which requests have no price?",
            (
                Query(
                    "sum by (model, provider) (weir_unpriced_requests_total)",
                    "{{model}} at {{provider}}",
                ),
            ),
            "none",
            "Since the gateways started. They hold up invoices: weir price set, then price rate.",
            kind="bars",
        ),
        Panel(
            "How old is the oldest usage that Postgres lacks?",
            (
                Query("max by (instance) (metering_lag_seconds)", "{{instance}}"),
                Query("max(weir_metering_lag_of_all_seconds)", "any gateway, also gone ones"),
            ),
            "s",
            "Within a second where all is well. The journal keeps it meanwhile.",
            warn_above=60,
        ),
        Panel(
            "How much is yet to be written to Postgres?",
            (
                Query("sum by (instance) (weir_unshipped_records)", "{{instance}}"),
                Query("max(weir_second_copies)", "with a second copy in Redis"),
            ),
            "none",
            "Records of the journals.",
        ),
        Panel(
            "How fast is it written?",
            (
                Query(
                    "sum(rate(weir_shipped_records_total[$__rate_interval]))", "records a second"
                ),
                Query(
                    "histogram_quantile(0.95, sum by (le)"
                    " (rate(weir_shipper_batch_seconds_bucket[$__rate_interval])))",
                    "p95 of a transaction, seconds",
                ),
            ),
            "none",
            "What Postgres takes.",
        ),
        Panel(
            "How full are the journals?",
            (Query("weir:journal_full:ratio", "{{instance}}"),),
            "percentunit",
            "Of WEIR_JOURNAL_BYTES_MAX. From seven eighths on shipped segments go; when full,"
            " requests are refused.",
            most=1,
            warn_above=0.75,
        ),
        Panel(
            "What waits for a person?",
            (
                Query("max(weir_dead_letters)", "dead letters"),
                Query("max(weir_stray_usage_rows)", "rows without a partition"),
                Query("max by (check) (weir_reconcile_findings)", "found by {{check}}"),
            ),
            "none",
            "Records that Postgres refused, and what reconciliation found in its latest runs.",
            kind="bars",
        ),
        Panel(
            "Which budgets were reached, and did anybody hear of it?",
            (
                Query("sum by (threshold) (weir_budget_alerts_total)", "reached {{threshold}} %"),
                Query(
                    "sum by (result) (weir_budget_alert_deliveries_total)",
                    "told to the webhook: {{result}}",
                ),
            ),
            "none",
            "Since the gateways started.",
            kind="bars",
        ),
    ),
)
