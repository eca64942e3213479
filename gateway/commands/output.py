"""How commands print: one JSON document, or a table for people."""

from collections.abc import Sequence
from datetime import datetime

import click
import msgspec

from gateway.administration.views import View


def show_one(view: View, *, as_json: bool) -> None:
    """Print one subject: as JSON, or one `field  value` a line."""
    if as_json:
        click.echo(msgspec.json.encode(view).decode())
        return
    width = max(len(name) for name in view)
    for name, value in view.items():
        click.echo(f"{name:<{width}}  {_cell(value)}")


def show_page(view: View, columns: Sequence[str], *, as_json: bool) -> None:
    """Print a page of subjects: as JSON, or a table of `columns` and how to get the next page."""
    if as_json:
        click.echo(msgspec.json.encode(view).decode())
        return
    _show_table(view["items"], columns)
    if view["next_cursor"] is not None:
        click.echo(f"more: --cursor {view['next_cursor']}")


def show_list(views: Sequence[View], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a few subjects, all that there are: as JSON, or a table of `columns`."""
    if as_json:
        click.echo(msgspec.json.encode({"items": views}).decode())
    else:
        _show_table(views, columns)


def instant_option(
    _context: click.Context, option: click.Parameter, value: str | None
) -> int | None:
    """A click callback: an RFC 3339 instant as Unix milliseconds."""
    if value is None:
        return None
    try:
        instant = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter("must be like 2027-01-31T12:00:00Z", param=option) from error
    if instant.tzinfo is None:
        raise click.BadParameter("must end with Z or an offset from UTC", param=option)
    return int(instant.timestamp() * 1000)


def _show_table(views: Sequence[View], columns: Sequence[str]) -> None:
    rows = [[_cell(view.get(column)) for column in columns] for view in views]
    table = [[column.upper() for column in columns], *rows]
    widths = [max(len(row[index]) for row in table) for index in range(len(columns))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    return str(value)
