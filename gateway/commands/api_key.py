"""How a command is given the API key of a server that Weir asks.

No variable is read unless the command names it: one that is still exported for another server would
be sent to this one.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import click


def with_api_key(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--api-key` and `--api-key-env`, and what they say as `api_key`."""

    @click.option(
        "--api-key-env",
        "variable",
        metavar="NAME",
        help="The environment variable that holds its key, sent to it as bearer token.",
    )
    @click.option(
        "--api-key",
        metavar="KEY",
        help="The key itself, which others on this machine may see: better --api-key-env.",
    )
    @functools.wraps(command)
    def with_key(*, api_key: str | None, variable: str | None, **arguments: Any) -> None:
        if variable is not None:
            if api_key is not None:
                raise click.UsageError("give --api-key or --api-key-env, not both")
            api_key = _read(variable)
        command(api_key=api_key, **arguments)

    return with_key


def _read(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        # Unnamed: whoever takes the option for --api-key has given the key itself.
        raise click.UsageError("--api-key-env names a variable that is not set, or is empty")
    return value
