"""How an import of prices is shown: each line, and what it would do to each tenant's bill."""

from collections.abc import Sequence

import click

from billing.domain.price_effect import Effect
from gateway.administration.price_effect_view import effect_view
from gateway.administration.price_import import ImportedPrice
from gateway.administration.views import View, price_view
from gateway.commands.output import show_one, show_page

LINE_COLUMNS = (
    *("line", "is", "model", "provider", "for", "class", "currency"),
    *("input", "cached_input", "output", "reasoning", "request", "effective_from"),
)
EFFECT_COLUMNS = (
    *("at", "tenant_id", "currency", "requests", "cost", "at_prices_before", "at_prices_after"),
    *("difference", "unpriced_before", "unpriced_after"),
)


def show_import(
    imported: Sequence[ImportedPrice], effect: Sequence[Effect] | None, *, as_json: bool
) -> None:
    """Print what was written, or with an effect what would be."""
    lines = [
        {"line": each.line, "is": each.novelty.value, **price_view(each.price)} for each in imported
    ]
    effects = None if effect is None else [effect_view(each) for each in effect]
    if as_json:
        written = effect is None
        show_one({"written": written, "lines": lines, "effect": effects}, as_json=True)
        return
    for line in lines:
        line["for"] = whose(line)
    show_page({"items": lines, "next_cursor": None}, LINE_COLUMNS, as_json=False)
    if effects is None:
        return
    click.echo()
    click.echo(
        "The last 30 days, at the prices of each instant before and after (nothing was written):"
    )
    show_page({"items": effects, "next_cursor": None}, EFFECT_COLUMNS, as_json=False)


def whose(price: View) -> str | None:
    """Whose price it is, in one column."""
    if price["plan"] is not None:
        return f"plan {price['plan']}"
    return None if price["tenant_id"] is None else str(price["tenant_id"])
