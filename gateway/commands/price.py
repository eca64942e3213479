"""`weir price`: what tenants pay for a model's tokens."""

import click

from billing.domain.price_book import PRICE_PICO_MAX
from gateway.administration import NewPrice
from gateway.administration.checks import check_currency
from gateway.administration.hosted_prices import parse_price
from gateway.administration.views import page_view, price_view
from gateway.commands.connection import Connection, connected
from gateway.commands.output import instant_option, show_one, show_page
from gateway.commands.paging import paged

COLUMNS = (
    "id",
    "model",
    "provider",
    "currency",
    "input",
    "cached_input",
    "output",
    "effective_from",
)


@click.group()
def price() -> None:
    """List prices. One is added, never changed: the next of its model, provider and currency
    begins where it ends."""


@price.command("set")
@click.argument("model")
@click.option(
    "--input", "input_price", required=True, help="Of a million prompt tokens, such as 0.40."
)
@click.option("--output", "output_price", required=True, help="Of a million output tokens.")
@click.option(
    "--cached-input", "cached_price", help="Of cached prompt tokens; default: as any prompt token."
)
@click.option("--currency", default="USD", show_default=True)
@click.option(
    "--provider", default="self", show_default=True, help="Who serves it: self or hosted:<name>."
)
@click.option(
    "--effective-from",
    "effective_from_ms",
    callback=instant_option,
    help="From this instant on; default: a first price at once, a later one in 2 s.",
)
@connected
def set_price(
    connection: Connection,
    *,
    model: str,
    input_price: str,
    output_price: str,
    cached_price: str | None,
    currency: str,
    provider: str,
    effective_from_ms: int | None,
) -> None:
    """Add a price of MODEL, per million tokens."""
    check_currency(currency)

    def pico(text: str, option: str) -> int:
        return parse_price(text, field=option, currency=currency, pico_max=PRICE_PICO_MAX)

    wanted = NewPrice(
        model=model,
        provider=provider,
        currency=currency,
        input_pico=pico(input_price, "--input"),
        cached_input_pico=None if cached_price is None else pico(cached_price, "--cached-input"),
        output_pico=pico(output_price, "--output"),
    )
    added = connection.run(
        lambda administration: administration.set_price(
            connection.actor, wanted, effective_from_ms=effective_from_ms
        )
    )
    show_one(price_view(added), as_json=connection.as_json)


@price.command("list")
@click.option("--model", help="Of one model only.")
@paged
@connected
def list_prices(
    connection: Connection, limit: int, cursor: str | None, *, model: str | None
) -> None:
    """Prices, the latest written first."""
    page = connection.run(
        lambda administration: administration.list_prices(limit, cursor, model=model)
    )
    view = page_view(page, [price_view(each) for each in page.items])
    show_page(view, COLUMNS, as_json=connection.as_json)
