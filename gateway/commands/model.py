"""`weir model`: the models that are served."""

import click

from gateway.administration.views import model_view, page_view
from gateway.commands.connection import Connection, connected
from gateway.commands.output import show_one, show_page
from gateway.commands.paging import paged
from gateway.domain.tenant import Model

COLUMNS = ("id", "context_tokens", "max_output_tokens", "default_output_tokens")


@click.group()
def model() -> None:
    """Models."""


@model.command()
@click.argument("model_id", metavar="MODEL")
@click.option("--context-tokens", type=int, required=True, help="Longest prompt and output.")
@click.option(
    "--max-output-tokens", type=int, required=True, help="Most output without own maximum."
)
@click.option(
    "--default-output-tokens",
    type=int,
    default=256,
    show_default=True,
    help="Expected output, to reserve by until it is learned.",
)
@connected
def add(
    connection: Connection,
    model_id: str,
    context_tokens: int,
    max_output_tokens: int,
    default_output_tokens: int,
) -> None:
    """Add a model, or change it."""
    wanted = Model(
        id=model_id,
        context_tokens=context_tokens,
        max_output_tokens=max_output_tokens,
        default_output_tokens=default_output_tokens,
    )
    added = connection.run(
        lambda administration: administration.register_model(connection.actor, wanted)
    )
    show_one(model_view(added), as_json=connection.as_json)


@model.command("list")
@paged
@connected
def list_models(connection: Connection, limit: int, cursor: str | None) -> None:
    """Models by id."""
    page = connection.run(lambda administration: administration.list_models(limit, cursor))
    view = page_view(page, [model_view(each) for each in page.items])
    show_page(view, COLUMNS, as_json=connection.as_json)
