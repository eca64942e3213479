"""What the figures say, in sentences, and what a reader must know of them."""

from fractions import Fraction

from billing.domain.money import PICO_PER_UNIT
from billing.domain.unit_cost.hosted import REFERENCE_READ_ON, Comparison
from billing.domain.unit_cost.quantities import show_decimal
from billing.domain.unit_cost.question import LIST_PREFIX
from billing.domain.unit_cost.report import UnitCost

MONEY_DECIMALS = 4
MODELLED = (
    "Work is computed by a step model, not measured: tokens are the engines' own counts, the GPU"
    " time they took is the model's."
)


def money(pico: int | None, *, decimals: int = MONEY_DECIMALS) -> str:
    """An amount for reading: rounded."""
    return "-" if pico is None else show_decimal(Fraction(pico, PICO_PER_UNIT), decimals=decimals)


def percent(share: Fraction | None) -> str:
    """For reading."""
    return "-" if share is None else f"{show_decimal(share * 100, decimals=1)} %"


def summary(found: UnitCost) -> list[str]:
    """What it costs now, and at full use; then a sentence for each hosted price."""
    currency = found.costs.currency
    if found.now.million_output_all is None:
        return [f"The pool did no work that could bear its bill: all of it is idle, in {currency}."]
    first = (
        f"At {percent(found.utilisation)} utilisation a million output tokens cost"
        f" {money(found.now.million_output_all)} {currency}, all costs on them;"
        f" at full use {money(found.at_full_use.million_output_all)}."
    )
    return [first, *(_comparison(found, each) for each in found.comparisons)]


def _comparison(found: UnitCost, each: Comparison) -> str:
    if each.break_even is None or each.price_factor is None:
        return f"{each.name} charges nothing for these tokens: it is never dearer."
    now, currency = found.utilisation, found.costs.currency
    if each.break_even > 1:
        return (
            f"{each.name} is cheaper at any utilisation: the pool would have to reach"
            f" {percent(each.break_even)}."
        )
    side = "dearer" if each.saved_pico > 0 else "cheaper" if each.saved_pico < 0 else "as dear"
    return (
        f"Above {percent(each.break_even)} utilisation {each.name} is dearer than the pool; now, at"
        f" {percent(now)}, it is {side}, by {money(abs(each.saved_pico), decimals=2)} {currency}."
    )


def notes(found: UnitCost, *, models: int, hosted_requests: int) -> list[str]:
    """What a reader must know, the most important first."""
    told = [MODELLED]
    if found.over_spans:
        told.append(
            f"In {found.over_spans} of the times paid for the model finds more work than was paid:"
            " it overstates, or hours are missing. All of their bill went to the work."
        )
    if models > 1:
        told.append(
            f"{models} models are in this bill and one step model holds for all: ask for each pool"
            " with its own model, hours and coefficients."
        )
    unpriced = sum(each.unpriced_requests for each in found.groups)
    if unpriced:
        told.append(f"{unpriced} requests have no price: they are missing from the revenue.")
    others = sorted({name for each in found.groups for name in each.other_revenue_pico})
    if others:
        told.append(f"Revenue in {', '.join(others)} is told apart and in no margin.")
    if hosted_requests:
        told.append(
            f"{hosted_requests} requests were served by hosted providers: neither their revenue nor"
            " their cost is in here."
        )
    if any(each.name.startswith(LIST_PREFIX) for each in found.comparisons):
        told.append(
            f"Prices called {LIST_PREFIX} are of Llama-3.3-70B, from public lists read on"
            f" {REFERENCE_READ_ON}: look up today's."
        )
    return told
