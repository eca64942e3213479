"""The unit cost for people: tables that fit a hundred columns, amounts rounded for reading."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from billing.domain.money import PICO_PER_UNIT
from billing.domain.unit_cost.hosted import Comparison
from billing.domain.unit_cost.hours_file import hours_of
from billing.domain.unit_cost.quantities import show_decimal, show_exact
from billing.domain.unit_cost.report import GroupCost, HourOfDay, TokenCosts, UnitCost
from billing.domain.unit_cost.words import money, notes, percent, summary
from gateway.adapters.unit_costs import UnitCostFound
from gateway.domain.instants import shown

WIDTH = 100
NAME_WIDTH = 24
NAME_WIDTH_MIN = 8
GAP = "  "
BAR_WIDTH = 40
TOKEN_LINES = {
    "request": "a request",
    "million_tokens": "a million tokens, in and out",
    "million_output_all": "a million output tokens, all costs on them",
    "million_prompt": "a million prompt tokens: prefill",
    "million_uncached": "a million of them not cached: prefill",
    "million_output": "a million output tokens: decode and KV",
}


def lines_of(found: UnitCostFound) -> Iterator[str]:
    """All lines, none wider than WIDTH."""
    cost, question = found.cost, found.question
    pool = "all models" if question.model is None else _short(question.model, 60)
    yield f"Unit cost of {pool}, in {cost.costs.currency}"
    yield f"{shown(question.since_ms)} to {shown(question.until_ms)}"
    yield ""
    yield from _bill(cost)
    yield ""
    for sentence in summary(cost):
        yield from textwrap.wrap(sentence, WIDTH, subsequent_indent="  ")
    yield ""
    yield from _tokens(cost)
    yield ""
    yield from _groups(cost, question.by.value)
    yield ""
    yield "Utilisation by hour of the day (UTC)"
    yield from (_hour(each) for each in cost.hours if each.paid_gpu_ms or each.busy_gpu_ms)
    if cost.comparisons:
        yield ""
        yield from _hosted(cost.comparisons)
    yield ""
    told = notes(cost, models=found.models, hosted_requests=found.hosted_requests)
    for note in [*told, _constants(cost)]:
        yield from textwrap.wrap(note, WIDTH, initial_indent="- ", subsequent_indent="  ")


def _bill(cost: UnitCost) -> Iterator[str]:
    hours = (cost.paid_gpu_ms, cost.busy_gpu_ms, cost.paid_gpu_ms - cost.busy_gpu_ms)
    paid, busy, idle = (show_decimal(hours_of(each), decimals=3) for each in hours)
    price, operations = cost.costs.price_per_gpu_hour_pico, cost.costs.operations_pico
    rows = [
        ["", "GPU-HOURS", "COST", ""],
        ["paid", paid, money(cost.bill_pico, decimals=2), f"at {money(price)} an hour"],
        ["busy", busy, money(cost.busy_pico, decimals=2), percent(cost.utilisation)],
        ["idle", idle, money(cost.idle_pico, decimals=2), ""],
    ]
    if operations:
        rows[1][3] += f", operations {money(operations, decimals=2)}"
    yield from _table(rows, left=(0, 3))


def _tokens(cost: UnitCost) -> Iterator[str]:
    rows = [["WHAT COSTS", "AT FULL USE", "AT THIS UTILISATION"]]
    rows += [
        [label, _amount(cost.at_full_use, name), _amount(cost.now, name)]
        for name, label in TOKEN_LINES.items()
    ]
    yield from _table(rows)


def _amount(costs: TokenCosts, name: str) -> str:
    return money(getattr(costs, name), decimals=6 if name == "request" else 4)


def _groups(cost: UnitCost, by: str) -> Iterator[str]:
    rows = [[by.upper(), "REQUESTS", "PROMPT", "OUTPUT", "COST", "REVENUE", "MARGIN"]]
    decimals = _decimals(cost.bill_pico)
    rows += [_group(each, decimals) for each in cost.groups]

    def shown_money(pico: int) -> str:
        return money(pico, decimals=decimals)

    idle = shown_money(cost.idle_pico)
    rows.append(["(idle)", "", "", "", idle, "", shown_money(-cost.idle_pico)])
    revenue = sum(each.revenue_pico for each in cost.groups)
    counts = (
        sum(each.requests for each in cost.groups),
        sum(each.prompt_tokens for each in cost.groups),
        sum(each.output_tokens for each in cost.groups),
    )
    amounts = (cost.bill_pico, revenue, revenue - cost.bill_pico)
    rows.append(["(total)", *map(_count, counts), *map(shown_money, amounts)])
    yield from _table(rows)
    for each in cost.groups:
        for currency, pico in each.other_revenue_pico.items():
            yield f"{_short(each.group)} also: revenue {money(pico)} {currency}"


def _decimals(bill_pico: int) -> int:
    """So many that columns stay narrow."""
    return 4 if bill_pico < 1_000 * PICO_PER_UNIT else 2


def _count(count: int) -> str:
    """Plain, above a thousand million in millions."""
    if count < 10**9:
        return str(count)
    return f"{show_decimal(Fraction(count, 10**6), decimals=1)}M"


def _group(each: GroupCost, decimals: int) -> list[str]:
    counts = (each.requests, each.prompt_tokens, each.output_tokens)
    amounts = (each.charged.cost_pico, each.revenue_pico, each.margin_pico)
    told = (money(pico, decimals=decimals) for pico in amounts)
    return [_short(each.group), *map(_count, counts), *told]


def _hour(each: HourOfDay) -> str:
    share = each.utilisation
    bar = "" if share is None else "#" * min(BAR_WIDTH, int(share * BAR_WIDTH))
    return f"{each.hour:02}  {percent(share):>9}  {bar}".rstrip()


def _hosted(comparisons: Iterable[Comparison]) -> Iterator[str]:
    rows = [["HOSTED", "IN", "OUT", "WOULD COST", "BREAK-EVEN", "GPU-HOUR AT PAR", "PRICE AT PAR"]]
    for each in comparisons:
        prices, factor = set(each.rates.values()), each.price_factor
        price_in, price_out, par = "by model", "by model", "-"
        if len(prices) == 1:
            (price,) = prices
            price_in, price_out = _rate(price.input_pico), _rate(price.output_pico)
        if factor is not None:
            par = f"x {show_decimal(factor, decimals=3)}"
        rows.append(
            [
                *(_short(each.name), price_in, price_out),
                money(each.hosted_pico, decimals=2),
                percent(each.break_even),
                money(each.gpu_hour_pico),
                par,
            ]
        )
    yield from _table(rows)


def _rate(pico: int) -> str:
    """Of a million tokens."""
    return money(pico * 1_000_000)


def _constants(cost: UnitCost) -> str:
    model = cost.model
    names = ("a0", "a1", "a2", "b0", "b1", "b2", "batch", "scale", "gpus")
    values = " ".join(f"{name}={show_exact(getattr(model, name))}" for name in names)
    step = show_decimal(cost.step_ms, decimals=3)
    source = "as given" if model.step is not None else "as recorded"
    return f"Step model {model.name} ({model.source}): {values}; step {step} ms, {source}."


def _short(name: str, width: int = NAME_WIDTH) -> str:
    return name if len(name) <= width else name[: width - 1] + "…"


def _table(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> Iterator[str]:
    """Names to the left, figures to the right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    too_wide = sum(widths) + len(GAP) * (len(widths) - 1) - WIDTH
    if too_wide > 0:
        widths[0] = max(NAME_WIDTH_MIN, widths[0] - too_wide)
    for name, *figures in rows:
        row = [_short(name, widths[0]), *figures]
        cells = (
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield GAP.join(cells).rstrip()
