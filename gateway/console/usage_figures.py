"""Usage as the page, its plot and its files show it: the same figures in each."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from billing.domain.money import show_amount
from billing.postgres.usage_charts import Counts, Measure, UsageChart
from gateway.administration.audit_export import safe_cell
from gateway.console.usage_ask import Ask

MEASURES = {
    Measure.TOKENS: "Tokens (in and out)",
    Measure.INPUT: "Tokens in",
    Measure.CACHED: "Cached tokens in",
    Measure.OUTPUT: "Tokens out",
    Measure.REQUESTS: "Requests",
}
Label = Callable[[str], str]
TOLD = {"tenant": ("name",), "key": ("name", "tenant")}
"""What the file of groups tells of each beside its id, the name first."""
Told = Mapping[str, Sequence[str]]


def plot_of(ask: Ask, chart: UsageChart, now: datetime, label: Label) -> dict[str, Any]:
    """The data of the plot: every bar of the time that has been, 0 where nothing was used."""
    starts = ask.starts(now)
    rest = chart.group_count - len(chart.top)
    drawn: list[tuple[str | None, str]] = [(name, label(name)) for name in chart.top]
    if rest:
        drawn.append((None, "1 other" if rest == 1 else f"{rest:,} others"))
    return {
        "x": starts,
        "unit": "requests" if ask.measure is Measure.REQUESTS else "tokens",
        "kind": "bars",
        "stacked": True,
        "series": [
            {"name": text, "values": [chart.points.get(at, {}).get(name, 0) for at in starts]}
            for name, text in drawn
        ],
    }


def size_of(counts: Counts, measure: Measure) -> int:
    """How much of what is shown these are."""
    return {
        Measure.TOKENS: counts.prompt_tokens + counts.output_tokens,
        Measure.INPUT: counts.prompt_tokens,
        Measure.CACHED: counts.cached_prompt_tokens,
        Measure.OUTPUT: counts.output_tokens,
        Measure.REQUESTS: counts.requests,
    }[measure]


def amounts_of(costs: Mapping[str, int]) -> list[tuple[str, str]]:
    """Exact amounts with their currencies, which are never added."""
    return [(show_amount(pico, currency), currency) for currency, pico in sorted(costs.items())]


def told_label(told: Told) -> Label:
    """`name (id)`, of which a file has no two alike; what has no name of its own is its id."""

    def label(group: str) -> str:
        name = told[group][0] if group in told else group
        return group if name == group else f"{name} ({group})"

    return label


def groups_file(ask: Ask, chart: UsageChart, told: Told, *, money: bool) -> str:
    """The table as CSV, with costs by currency where `money` may be seen."""
    currencies = sorted(chart.whole.costs) if money else []
    beside = TOLD.get(ask.by, ())
    head = [
        ask.by, *beside, "first_day", "last_day", "requests", "input_tokens", "cached_input_tokens",
        "output_tokens", "provisional_requests",
        *(f"cost_{currency}" for currency in currencies),
        *(["unpriced_requests"] if money else []),
    ]  # fmt: skip
    rows = (
        [
            name, *told.get(name, [""] * len(beside)), ask.first, ask.last, counts.requests,
            counts.prompt_tokens, counts.cached_prompt_tokens, counts.output_tokens,
            counts.provisional_requests,
            *(_amount(counts.costs, currency) for currency in currencies),
            *([counts.unpriced_requests] if money else []),
        ]
        for name, counts in chart.groups
    )  # fmt: skip
    return _csv(head, rows)


def plot_file(plot: Mapping[str, Any]) -> str:
    """What the plot draws as CSV, a row a bar, with the instant at which it begins."""
    series = plot["series"]
    head = ["start_utc", *(each["name"] for each in series)]
    rows = (
        [f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"]
        + [each["values"][index] for each in series]
        for index, at in enumerate(plot["x"])
    )
    return _csv(head, rows)


def _amount(costs: Mapping[str, int], currency: str) -> str:
    return show_amount(costs[currency], currency) if currency in costs else ""


def _csv(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    for row in (head, *rows):
        writer.writerow([safe_cell(str(each)) for each in row])
    return out.getvalue()
