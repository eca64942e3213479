"""`weir price`: what tenants pay for a model's tokens and requests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from billing.domain.price_effect import Effect
from gateway.administration.price_file import READERS, FaultyFile
from gateway.administration.price_rating import rated_view
from gateway.administration.price_wishes import CLASSES, PriceTexts, read_price
from gateway.administration.views import page_view, plan_view, price_view
from gateway.commands.connection import Connection, connected
from gateway.commands.output import instant_option, show_one, show_page
from gateway.commands.paging import paged
from gateway.commands.price_import_view import show_import, whose

COLUMNS = (
    "id",
    "model",
    "provider",
    "for",
    "class",
    "currency",
    "input",
    "cached_input",
    "output",
    "reasoning",
    "request",
    "effective_from",
)
UNPRICED_COLUMNS = (
    *("tenant_id", "model", "provider", "class", "currency"),
    *("requests", "first_at", "last_at"),
)
PLAN_COLUMNS = ("tenant_id", "plan", "effective_from")


@click.group()
def price() -> None:
    """Prices: of a tenant, of the tenants on a plan, or of everybody. One is added, never changed:
    the next of its line begins where it ends."""


def _of_a_line(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which line a price is of."""
    for option in (
        click.option(
            "--effective-from",
            "effective_from_ms",
            callback=instant_option,
            help="From this instant on; default: at once where none held, else in 2 s.",
        ),
        click.option(
            "--provider",
            default="self",
            show_default=True,
            help="Who serves it: self or hosted:<name>.",
        ),
        click.option("--currency", default="USD", show_default=True),
        click.option(
            "--class", "request_class", type=click.Choice(CLASSES), help="Of this class alone."
        ),
        click.option("--plan", help="Of the tenants on this plan."),
        click.option("--tenant", "tenant_id", help="Of this tenant alone."),
        click.argument("model"),
    ):
        command = option(command)
    return command


@price.command("set")
@_of_a_line
@click.option("--input", required=True, help="Of a million prompt tokens, such as 0.40.")
@click.option("--output", required=True, help="Of a million output tokens.")
@click.option("--cached-input", help="Of cached prompt tokens; default: as any prompt token.")
@click.option("--reasoning", help="Of reasoning tokens; default: as any output token.")
@click.option("--request", help="Of each request beside its tokens; default: nothing.")
@connected
def set_price(connection: Connection, *, effective_from_ms: int | None, **texts: Any) -> None:
    """Add a price of MODEL, per million tokens."""
    _set(connection, PriceTexts(**texts), effective_from_ms)


@price.command("withdraw")
@_of_a_line
@connected
def withdraw_price(connection: Connection, *, effective_from_ms: int | None, **texts: Any) -> None:
    """End the prices of MODEL of a tenant, a plan or a class: from then on what is behind them
    holds, at last the list price."""
    _set(connection, PriceTexts(**texts, withdrawn=True), effective_from_ms)


def _set(connection: Connection, texts: PriceTexts, effective_from_ms: int | None) -> None:
    wanted = read_price(texts, option="--")
    added = connection.run(
        lambda administration: administration.set_price(
            connection.actor, wanted, effective_from_ms=effective_from_ms
        )
    )
    show_one(price_view(added), as_json=connection.as_json)


@price.command("list")
@click.option("--model", help="Of one model only.")
@click.option("--tenant", "tenant_id", help="A tenant's own only.")
@click.option("--plan", help="A plan's only.")
@paged
@connected
def list_prices(
    connection: Connection,
    limit: int,
    cursor: str | None,
    *,
    model: str | None,
    tenant_id: str | None,
    plan: str | None,
) -> None:
    """Prices, the latest written first."""
    page = connection.run(
        lambda administration: administration.list_prices(
            limit, cursor, model=model, tenant_id=tenant_id, plan=plan
        )
    )
    view = page_view(page, [price_view(each) for each in page.items])
    if not connection.as_json:
        for item in view["items"]:
            item["for"] = whose(item)
    show_page(view, COLUMNS, as_json=connection.as_json)


@price.command("plan")
@click.argument("tenant_id", metavar="TENANT")
@click.argument("plan", required=False)
@click.option("--none", "no_plan", is_flag=True, help="On no plan any more.")
@click.option(
    "--effective-from",
    "effective_from_ms",
    callback=instant_option,
    help="From this instant on; default: in 2 s.",
)
@connected
def set_plan(
    connection: Connection,
    tenant_id: str,
    plan: str | None,
    *,
    no_plan: bool,
    effective_from_ms: int | None,
) -> None:
    """Put TENANT on PLAN: it pays the plan's prices where it has none of its own."""
    if (plan is None) is not no_plan:
        raise click.UsageError("name a PLAN, or --none")
    member = connection.run(
        lambda administration: administration.set_plan(
            connection.actor, tenant_id, plan, effective_from_ms=effective_from_ms
        )
    )
    show_one(plan_view(member), as_json=connection.as_json)


@price.command("plans")
@click.option("--tenant", "tenant_id", help="Of one tenant only.")
@paged
@connected
def list_plans(
    connection: Connection, limit: int, cursor: str | None, *, tenant_id: str | None
) -> None:
    """Who is on which plan from when on, the latest written first."""
    page = connection.run(
        lambda administration: administration.list_plans(limit, cursor, tenant_id=tenant_id)
    )
    view = page_view(page, [plan_view(each) for each in page.items])
    show_page(view, PLAN_COLUMNS, as_json=connection.as_json)


@price.command("rate")
@connected
def rate(connection: Connection) -> None:
    """Rate requests that had no price and for whose time there is one now. Gateways do it each
    minute; what still has none is listed, and holds up its tenant's invoice."""
    rated = connection.run(lambda administration: administration.rate_unpriced(connection.actor))
    view = rated_view(rated)
    if connection.as_json:
        show_one(view, as_json=True)
        return
    click.echo(f"rated: {rated.rated}")
    if rated.unpriced:
        listed = {"items": view["unpriced"], "next_cursor": None}
        show_page(listed, UNPRICED_COLUMNS, as_json=False)


@price.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--dry-run", is_flag=True, help="Write nothing; show what it would do to tenants' bills."
)
@connected
def import_prices(connection: Connection, file: Path, *, dry_run: bool) -> None:
    """Add the prices of FILE (.toml or .csv), all or none. With --dry-run also what each tenant's
    use of the last 30 days would cost at them."""
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise click.UsageError(f"{file}: must end in {' or '.join(READERS)}")
    effect: list[Effect] | None = None
    try:
        lines = reader(file.read_bytes())
        if dry_run:
            imported, effect = connection.run(
                lambda administration: administration.preview_prices(connection.actor, lines)
            )
        else:
            imported = connection.run(
                lambda administration: administration.import_prices(connection.actor, lines)
            )
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from error
    except FaultyFile as error:
        for fault in error.faults:
            click.echo(f"{file}:{fault.line}: {fault.what}", err=True)
        raise click.UsageError(
            f"{len(error.faults)} faults in {file}; nothing was written"
        ) from error
    show_import(imported, effect, as_json=connection.as_json)
