"""What the commands that run a worker have in common."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from backend.sglang_http.engine import Engine, EngineUnavailable
from backend.sglang_http.ledger_file import LedgerFile, LedgerUnusable
from backend.sglang_http.server import PortUnavailable, Worker, listen, run

Command = TypeVar("Command", bound=Callable[..., Any])


def serving_options(command: Command) -> Command:
    """Where to serve, for how long after SIGTERM, and where to keep the ledger."""
    for option in (
        click.option(
            "--grace-ms",
            type=click.IntRange(min=0),
            default=30_000,
            show_default=True,
            help="How long running answers may go on after SIGTERM.",
        ),
        click.option(
            "--ledger-file",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Where its account of every sequence outlives it; of several replicas each"
            " writes its own, with its number at the end of the name.",
        ),
        click.option("--port", type=click.IntRange(0, 65535), default=30000, show_default=True),
        click.option("--host", default="127.0.0.1", show_default=True),
    ):
        command = option(command)
    return command


def run_workers(
    engines: Sequence[Engine],
    host: str,
    port: int,
    grace_ms: int,
    ledger_file: Path | None = None,
) -> None:
    """Serve each engine on a port of its own: from `port` on, or any free ones where that is 0.
    One line says that one serves. Raises ClickException."""
    try:
        for place, engine in enumerate(engines):
            if ledger_file is not None:
                name = ledger_file.name if len(engines) == 1 else f"{ledger_file.name}.{place}"
                engine.ledger.keep(LedgerFile(ledger_file.with_name(name)))
        workers = [
            _worker(engine, host, port + place if port else 0)
            for place, engine in enumerate(engines)
        ]
        run(workers, grace_ms=grace_ms)
    except (PortUnavailable, EngineUnavailable, LedgerUnusable) as error:
        raise click.ClickException(str(error)) from None


def _worker(engine: Engine, host: str, port: int) -> Worker:
    bound = listen(host, port)
    address = f"http://{host}:{bound.getsockname()[1]}"
    line = f"{engine.info.name} worker serves {engine.info.model} at {address}"
    return Worker(engine, bound, lambda: click.echo(line))
