"""What the commands that run a worker have in common."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from backend.sglang_http.engine import Engine, EngineUnavailable
from backend.sglang_http.server import PortUnavailable, Worker, listen, run

Command = TypeVar("Command", bound=Callable[..., Any])


def serving_options(command: Command) -> Command:
    """Where to serve, and for how long after SIGTERM."""
    for option in (
        click.option(
            "--grace-ms",
            type=click.IntRange(min=0),
            default=30_000,
            show_default=True,
            help="How long running answers may go on after SIGTERM.",
        ),
        click.option("--port", type=click.IntRange(0, 65535), default=30000, show_default=True),
        click.option("--host", default="127.0.0.1", show_default=True),
    ):
        command = option(command)
    return command


def run_workers(engines: Sequence[Engine], host: str, port: int, grace_ms: int) -> None:
    """Serve each engine on a port of its own: from `port` on, or any free ones where that is 0.
    One line says that one serves. Raises ClickException."""
    try:
        workers = [
            _worker(engine, host, port + place if port else 0)
            for place, engine in enumerate(engines)
        ]
        run(workers, grace_ms=grace_ms)
    except (PortUnavailable, EngineUnavailable) as error:
        raise click.ClickException(str(error)) from None


def _worker(engine: Engine, host: str, port: int) -> Worker:
    bound = listen(host, port)
    address = f"http://{host}:{bound.getsockname()[1]}"
    line = f"{engine.info.name} worker serves {engine.info.model} at {address}"
    return Worker(engine, bound, lambda: click.echo(line))
