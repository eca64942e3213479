"""`weir hosted`: OpenAI-compatible providers that serve what the fleet cannot."""

import click
from msgspec import UNSET

from gateway.administration.hosted_prices import parse_price
from gateway.administration.views import hosted_view, page_view
from gateway.commands.api_key import with_api_key
from gateway.commands.connection import Connection, connected
from gateway.commands.output import show_one, show_page
from gateway.commands.paging import paged
from gateway.domain.hosted import HostedModel, HostedPrice, HostedProvider

COLUMNS = ("name", "url", "models", "rank", "enabled", "has_api_key")
OUTPUT_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")


@click.group()
def hosted() -> None:
    """Hosted providers, for tenants whose data policy allows them."""


def _pairs(
    _context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """A click callback: each OURS=REST once."""
    pairs: dict[str, str] = {}
    for value in values:
        ours, equals, rest = value.partition("=")
        if not (ours and equals and rest):
            raise click.BadParameter("must be one of our models, =, and a value", param=option)
        if ours in pairs:
            raise click.BadParameter(f"names {ours} twice", param=option)
        pairs[ours] = rest
    return pairs


@hosted.command()
@click.argument("name")
@click.option("--url", required=True, help="Its base address as SDKs take it, with /v1.")
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    callback=_pairs,
    metavar="OURS=THEIRS",
    help="A model of ours and the provider's name of it; repeatable.",
)
@click.option(
    "--price",
    "prices",
    multiple=True,
    callback=_pairs,
    metavar="OURS=INPUT,OUTPUT[,CACHED]",
    help="In USD per million tokens, such as m=0.40,1.60; repeatable.",
)
@click.option("--rank", type=int, default=0, show_default=True, help="The lowest is asked first.")
@click.option("--disabled", is_flag=True, help="Send it nothing.")
@click.option("--connect-timeout-ms", type=int, default=5_000, show_default=True)
@click.option("--first-event-timeout-ms", type=int, default=60_000, show_default=True)
@click.option("--stall-timeout-ms", type=int, default=60_000, show_default=True)
@click.option(
    "--output-limit-field",
    type=click.Choice(OUTPUT_LIMIT_FIELDS),
    default=OUTPUT_LIMIT_FIELDS[0],
    show_default=True,
    help="What it calls the maximum output.",
)
@click.option(
    "--extension", "extensions", multiple=True, help="A field of SGLang's that it understands too."
)
@click.option("--no-api-key", is_flag=True, help="Forget the stored key.")
@with_api_key
@connected
def add(
    connection: Connection,
    *,
    models: dict[str, str],
    prices: dict[str, str],
    extensions: tuple[str, ...],
    disabled: bool,
    api_key: str | None,
    no_api_key: bool,
    **fields: str | int,
) -> None:
    """Add a hosted provider, or replace it.

    Without a key the stored one stays, unless the server is another one.
    """
    if no_api_key and api_key is not None:
        raise click.UsageError("give a key or --no-api-key, not both")
    for ours in prices.keys() - models.keys():
        raise click.UsageError(f"--price names {ours}, which no --model does")
    wanted = HostedProvider(
        models={
            ours: HostedModel(name=theirs, price=_price(ours, prices.get(ours)))
            for ours, theirs in models.items()
        },
        enabled=not disabled,
        extensions=extensions,
        **fields,  # type: ignore[arg-type]  # click has typed each; the verb checks them
    )
    key = None if no_api_key else (UNSET if api_key is None else api_key)
    added = connection.run(
        lambda administration: administration.register_hosted_provider(
            connection.actor, wanted, api_key=key
        )
    )
    show_one(hosted_view(added), as_json=connection.as_json)


@hosted.command("list")
@paged
@connected
def list_hosted(connection: Connection, limit: int, cursor: str | None) -> None:
    """Hosted providers by name."""
    page = connection.run(
        lambda administration: administration.list_hosted_providers(limit, cursor)
    )
    items = [hosted_view(each) for each in page.items]
    if not connection.as_json:
        for item in items:
            item["models"] = ",".join(item["models"])
    show_page(page_view(page, items), COLUMNS, as_json=connection.as_json)


@hosted.command()
@click.argument("name")
@connected
def show(connection: Connection, name: str) -> None:
    """One hosted provider; of its key only whether there is one."""
    found = connection.run(lambda administration: administration.get_hosted_provider(name))
    show_one(hosted_view(found), as_json=connection.as_json)


@hosted.command()
@click.argument("name")
@connected
def remove(connection: Connection, name: str) -> None:
    """Forget a hosted provider and its key."""
    connection.run(
        lambda administration: administration.remove_hosted_provider(connection.actor, name)
    )
    show_one({"name": name, "removed": True}, as_json=connection.as_json)


def _price(ours: str, text: str | None) -> HostedPrice | None:
    if text is None:
        return None
    parts = text.split(",")
    if not 2 <= len(parts) <= 3:
        raise click.UsageError(f"--price {ours}: must be INPUT,OUTPUT or INPUT,OUTPUT,CACHED")
    names = ("input", "output", "cached_input")
    return HostedPrice(
        **{
            name: parse_price(part, field=f"--price {ours}, {name}")
            for name, part in zip(names, parts, strict=False)
        }
    )
