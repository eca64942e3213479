"""Queue: who waits, how long, for what, and who is sent away."""

from panel import Dashboard, Panel, Query
from panels_capacity import SIMULATED


def _pool(metric: str, legend: str = "{{model}} {{request_class}}") -> tuple[Query, ...]:
    """What every gateway says of a pool alike."""
    return (Query(f"max by (model, request_class) ({metric})", legend),)


def _rate(metric: str, by: str, legend: str) -> tuple[Query, ...]:
    return (Query(f"sum by ({by}) (rate({metric}[$__rate_interval]))", legend),)


def _now(title: str, request_class: str) -> Panel:
    return Panel(
        title,
        (
            Query(
                "sum(max by (model)"
                f' (weir_pool_waiting_requests{{request_class="{request_class}"}}))',
                "waiting",
            ),
        ),
        "none",
        "For a place on a worker, over all gateways.",
        kind="stat",
        width=6,
        height=4,
    )


QUEUE = Dashboard(
    "weir-queue",
    "queue",
    "Who waits for a place, for how long, and who is sent away.",
    (
        SIMULATED,
        _now("How many interactive wait now?", "interactive"),
        _now("How many batch wait now?", "batch"),
        Panel(
            "How many wait for their own limits?",
            (Query("sum(max by (model) (weir_pool_parked_requests))", "parked"),),
            "none",
            "Of their tenant: more workers would not help them.",
            kind="stat",
            width=6,
            height=4,
        ),
        Panel(
            "How many wait for a place?",
            _pool("weir_pool_waiting_requests"),
            "none",
            "Interactive goes before batch, tenants take turns by their weight.",
            stacked=True,
        ),
        Panel(
            "How long has the oldest of them waited?",
            _pool("weir_pool_oldest_wait_seconds"),
            "s",
            "A batch request may wait ten minutes before it is sent away.",
        ),
        Panel(
            "How long until all that waits has a place?",
            _pool("weir_pool_predicted_wait_seconds"),
            "s",
            "Predicted from how fast places came free. Not shown while that is not known.",
        ),
        Panel(
            "How much work waits?",
            _pool("weir_pool_waiting_tokens"),
            "none",
            "Prompt and expected output tokens.",
            stacked=True,
        ),
        Panel(
            "How long did those wait who got a place?",
            (
                Query(
                    "histogram_quantile(0.95, sum by (le, request_class)"
                    " (rate(weir_queue_wait_seconds_bucket[$__rate_interval])))",
                    "p95 {{request_class}}",
                ),
            ),
            "s",
            "Time parked at the tenant's limits included.",
        ),
        Panel(
            "How many places a second are given out?",
            _rate(
                "weir_queue_grants_total",
                "request_class, told_by",
                "{{request_class}}, {{told_by}}",
            ),
            "none",
            "By what told of them: at once with the reply, by a message, or by a renewal.",
            stacked=True,
        ),
        Panel(
            "How many are sent away without a place?",
            _rate(
                "weir_queue_refusals_total",
                "request_class, reason",
                "{{request_class}}: {{reason}}",
            ),
            "none",
            "A second, by reason.",
            stacked=True,
        ),
        Panel(
            "How many are refused by a limit of their own tenant?",
            _rate("weir_refusals_total", "kind", "{{kind}}"),
            "none",
            "A second, by the kind of limit: they got a 429.",
            stacked=True,
        ),
        Panel(
            "How is it decided who may run?",
            _rate("weir_admission_decisions_total", "result, mode", "{{result}}, {{mode}}"),
            "none",
            "A second. Mode store is the rule; held is while Redis is away.",
            stacked=True,
        ),
        Panel(
            "How often is batch asked to make room?",
            _rate("weir_queue_taken_back_total", "result", "{{result}}"),
            "none",
            "Places of batch that an interactive request asked back, a second.",
        ),
        Panel(
            "Do workers keep the time per token that places are given out by?",
            _rate("weir_queue_ceiling_samples_total", "result", "{{result}} the target"),
            "none",
            "Stretches of answers on full workers, a second: ceilings are learned from them.",
            stacked=True,
        ),
        Panel(
            "How are the workers' ceilings moved?",
            _rate("weir_queue_ceiling_decisions_total", "direction", "{{direction}}"),
            "none",
            "Decisions a second.",
            stacked=True,
        ),
    ),
)
