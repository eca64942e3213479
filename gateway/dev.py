"""`weir dev`: the whole system on this machine, from an empty directory to a key that works.

Owns: the order in which things start, and that all of it ends together.
"""

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from backend.embedded import (
    BinaryMissing,
    DataDir,
    DataDirInUse,
    DataDirUnusable,
    NoFreePort,
    StartFailed,
)
from gateway.dev_engines import check_engine, check_worker_flags
from gateway.dev_hosted import check_apart, check_hosted
from gateway.dev_system import DevOptions, DevSystem
from gateway.dev_terminal import Terminal

FAILURES = (BinaryMissing, DataDirInUse, DataDirUnusable, NoFreePort, StartFailed)
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".weir"),
    show_default=True,
    help="Where everything is kept; a second start finds it again.",
)
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True)
@click.option(
    "--engine",
    default="local",
    show_default=True,
    help="local (a small real model on this CPU), simulated, or an engine's base URL.",
)
@click.option("--workers", type=click.IntRange(1, 64), help="Engines to start.  [default: 1]")
@click.option(
    "--worker-flags",
    metavar="FLAGS",
    help="For the engines to start: flags of `weir backend local` or `weir backend simulated`, "
    "such as '--speed 4'.",
)
@click.option("--gateways", type=click.IntRange(1, 64), default=1, show_default=True)
@click.option(
    "--hosted",
    default="none",
    show_default=True,
    help="simulated (a second engine that stands for a hosted provider), a provider's base URL, "
    "or none.",
)
@click.option("--no-seed", is_flag=True, help="Create no tenants, keys and users.")
@click.option(
    "--history",
    is_flag=True,
    help="Make up last month's usage of the tenants, once, so that there is a month to invoice.",
)
@click.option("--redis-url", envvar="WEIR_REDIS_URL", hidden=True)
@click.option("--database-url", envvar="WEIR_DATABASE_URL", hidden=True)
@click.option("--engine-api-key", envvar="WEIR_WORKER_API_KEY", hidden=True)
@click.option("--hosted-api-key", envvar="WEIR_HOSTED_API_KEY", hidden=True)
def dev(
    *,
    data_dir: Path,
    port: int,
    engine: str,
    workers: int | None,
    worker_flags: str | None,
    gateways: int,
    hosted: str,
    no_seed: bool,
    history: bool,
    redis_url: str | None,
    database_url: str | None,
    engine_api_key: str | None,
    hosted_api_key: str | None,
) -> None:
    """The whole system on this machine.

    Starts a Redis-compatible server and Postgres (unless WEIR_REDIS_URL and WEIR_DATABASE_URL name
    some), migrates, creates two tenants with keys, and runs workers and gateways until Ctrl-C.
    """
    hosted = check_hosted(hosted)
    engine = check_engine(engine)
    check_apart(engine, hosted)
    if "://" in engine and workers is not None:
        raise click.UsageError("--workers counts engines to start; --engine URL is one already")
    if history and no_seed:
        raise click.UsageError("--history is the usage of the tenants that --no-seed leaves out")
    flags = () if worker_flags is None else check_worker_flags(engine, worker_flags)
    options = DevOptions(
        port=port,
        engine=engine,
        workers=workers or 1,
        worker_flags=flags,
        gateways=gateways,
        seed=not no_seed,
        redis_url=redis_url,
        database_url=database_url,
        engine_api_key=engine_api_key,
        hosted=hosted,
        hosted_api_key=hosted_api_key,
        history=history,
    )
    with _one_line_failures():
        directory = DataDir.open(data_dir)
        try:
            asyncio.run(_serve_until_stopped(directory, options))
        finally:
            directory.close()


@contextmanager
def _one_line_failures() -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot start: {error}") from error


async def _serve_until_stopped(data_dir: DataDir, options: DevOptions) -> None:
    stopping = asyncio.Event()
    terminal = Terminal()
    system = DevSystem(data_dir, options, terminal)

    def stop() -> None:
        if stopping.is_set():
            system.hurry()
        stopping.set()

    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop)
    interrupted = asyncio.create_task(stopping.wait())
    starting = asyncio.create_task(system.start())
    try:
        await asyncio.wait({interrupted, starting}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
            raise click.Abort
        terminal.say(starting.result())
        await interrupted
    finally:
        interrupted.cancel()
        terminal.say("stopping")
        since = time.monotonic()
        await system.stop()
        terminal.say(
            f"stopped in {time.monotonic() - since:.1f} s; {data_dir.path} keeps everything"
        )
