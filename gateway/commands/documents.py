"""What commands share that write a document to a file."""

import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from billing.documents.formats import Format, file_name, written
from billing.domain.invoicing.document import CreditDocument, Document, content_hash
from gateway.commands.output import show_one

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
STANDARD_OUTPUT = Path("-")


def document_options(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Give a command `--format` and `--output`."""
    formats = click.Choice([each.value for each in Format])
    with_output = click.option(
        "--output",
        "-o",
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
        help="The file; - is standard output. Default: the document's number, here.",
    )(command)
    return click.option(
        "--format", "file_format", type=formats, default=Format.PDF.value, show_default=True
    )(with_output)


def export_document(
    document: Document | CreditDocument,
    file_format: str,
    output: Path | None,
    *,
    void: bool = False,
    as_json: bool,
) -> None:
    """Write it, and say where; nothing is said where it goes to standard output."""
    wanted = Format(file_format)
    content = written(document, wanted, void=void)
    if output == STANDARD_OUTPUT:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    path = Path(file_name(document, wanted)) if output is None else output
    try:
        path.write_bytes(content)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from error
    told = {
        "file": str(path),
        "number": document.number,
        "bytes": len(content),
        "content_hash": content_hash(document) if document.number else None,
    }
    show_one(told, as_json=as_json)


def day_option(_context: click.Context, option: click.Parameter, value: str | None) -> date | None:
    """A click callback: a day such as 2026-12-20."""
    if value is None:
        return None
    try:
        return date.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter("must be a day like 2026-12-20", param=option) from error
