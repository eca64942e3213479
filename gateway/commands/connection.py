"""Where administrative commands find Postgres, who they say they are, and their common options."""

import asyncio
import functools
import os
import pwd
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import connect_redis
from gateway.administration import Administration
from gateway.domain.confirmation import Confirmation

DATA_DIR_DEFAULT = Path(".weir")
REDIS_TIMEOUT_MS = 250

Result = TypeVar("Result")


class Ready(msgspec.Struct):
    """What a command needs of `weir dev`'s ready.json."""

    database_url: str
    redis_url: str | None = None


@dataclass(frozen=True)
class Connection:
    """Reaches the stores that a command works on."""

    database_url: str
    redis_url: str | None
    as_json: bool

    @property
    def actor(self) -> str:
        """Who runs the command, as the audit log names them."""
        try:
            return f"cli:{pwd.getpwuid(os.getuid()).pw_name}"
        except KeyError:
            return f"cli:{os.getuid()}"

    def run(self, work: Callable[[Administration], Awaitable[Result]]) -> Result:
        """Do `work` with an Administration, and close what it used."""
        return asyncio.run(self._run(work))

    def run_confirmed(
        self,
        work: Callable[[Administration], Awaitable[Result]],
        confirm: Callable[[Administration], Awaitable[Confirmation]],
    ) -> tuple[Result, Confirmation]:
        """The same, and which gateways go by it after that."""

        async def both(administration: Administration) -> tuple[Result, Confirmation]:
            return await work(administration), await confirm(administration)

        return self.run(both)

    async def _run(self, work: Callable[[Administration], Awaitable[Result]]) -> Result:
        engine = async_engine(self.database_url, pooled=False)
        redis = None
        if self.redis_url is not None:
            redis = connect_redis(self.redis_url, timeout_ms=REDIS_TIMEOUT_MS)
        try:
            return await work(Administration(engine, redis=redis))
        finally:
            await engine.dispose()
            if redis is not None:
                await redis.aclose()


def connected(
    command: Callable[..., None],
) -> Callable[..., None]:
    """Give a command `--json`, `--data-dir` and `--database-url`, and a Connection from them."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=DATA_DIR_DEFAULT,
        show_default=True,
        help="Work on the `weir dev` that runs on this directory.",
    )
    @click.option(
        "--database-url",
        envvar="WEIR_DATABASE_URL",
        help="Work on this database; default: $WEIR_DATABASE_URL.",
    )
    @click.option(
        "--redis-url",
        envvar="WEIR_REDIS_URL",
        help="Tell revocations and prices to this Redis too; default: $WEIR_REDIS_URL.",
    )
    @functools.wraps(command)
    def with_connection(
        *,
        as_json: bool,
        data_dir: Path,
        database_url: str | None,
        redis_url: str | None,
        **arguments: Any,
    ) -> None:
        given = _given_options()
        if {"data_dir", "database_url"} <= given:
            raise click.UsageError("give --data-dir or --database-url, not both")
        if database_url is None or "data_dir" in given:
            ready = _ready(data_dir)
            database_url, redis_url = ready.database_url, ready.redis_url
        command(Connection(database_url, redis_url, as_json), **arguments)

    return with_connection


def _given_options() -> set[str]:
    context = click.get_current_context()
    return {
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }


def _ready(data_dir: Path) -> Ready:
    path = data_dir / "ready.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Ready)
    except FileNotFoundError as error:
        raise click.UsageError(
            f"{path} is not there: set WEIR_DATABASE_URL, or name the --data-dir of a running "
            "weir dev"
        ) from error
    except (OSError, msgspec.DecodeError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from error
