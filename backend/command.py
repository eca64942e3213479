"""`weir backend`: run one worker."""

from pathlib import Path

import click

from backend.local.engine import LocalEngine
from backend.local.settings import LocalSettings
from backend.sglang.command import sglang
from backend.sglang_http.command import run_workers, serving_options
from backend.sglang_http.engine import EngineUnavailable
from backend.simulated.command import simulated


@click.group()
def backend() -> None:
    """Run one worker that speaks SGLang's HTTP."""


backend.add_command(sglang)
backend.add_command(simulated)


@backend.command()
@serving_options
@click.option("--model", default="smollm2-135m", show_default=True, help="Served model name.")
@click.option("--context-length", type=click.IntRange(16, 8192), default=8192, show_default=True)
@click.option("--max-running-requests", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--max-queued-requests", type=click.IntRange(min=0), help="Default: no limit.")
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Threads of computation; more than there are idle cores is far slower than one.",
)
def local(
    *,
    host: str,
    port: int,
    grace_ms: int,
    ledger_file: Path | None,
    model: str,
    context_length: int,
    max_running_requests: int,
    max_queued_requests: int | None,
    threads: int,
) -> None:
    """A real language model on this machine's CPU."""
    settings = LocalSettings(
        model=model,
        context_tokens=context_length,
        max_running_requests=max_running_requests,
        max_queued_requests=max_queued_requests,
        threads=threads,
    )
    try:
        engine = LocalEngine(settings)
    except EngineUnavailable as error:
        raise click.ClickException(str(error)) from None
    run_workers([engine], host, port, grace_ms, ledger_file)
