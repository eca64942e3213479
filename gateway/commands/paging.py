"""The options of commands that list."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

from gateway.administration.pages import LIMIT_DEFAULT, LIMIT_MAX

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def paged(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Give a command `--limit` and `--cursor`."""
    with_cursor = click.option("--cursor", help="Go on after an earlier page.")(command)
    return click.option(
        "--limit",
        type=click.IntRange(1, LIMIT_MAX),
        default=LIMIT_DEFAULT,
        show_default=True,
        help="At most so many.",
    )(with_cursor)
