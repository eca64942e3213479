"""`weir backend`: run one worker."""

import click

from backend.local.engine import LocalEngine
from backend.local.settings import LocalSettings
from backend.sglang.command import sglang
from backend.sglang_http.engine import Engine, EngineUnavailable
from backend.sglang_http.server import PortUnavailable, listen, run
from backend.simulated.engine import SimulatedEngine
from backend.simulated.settings import SimulatedSettings

HOST = click.option("--host", default="127.0.0.1", show_default=True)
PORT = click.option("--port", type=click.IntRange(0, 65535), default=30000, show_default=True)
GRACE = click.option(
    "--grace-ms",
    type=click.IntRange(min=0),
    default=30_000,
    show_default=True,
    help="How long running answers may go on after SIGTERM.",
)


@click.group()
def backend() -> None:
    """Run one worker that speaks SGLang's HTTP."""


backend.add_command(sglang)


@backend.command()
@HOST
@PORT
@GRACE
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
    _run(engine, host, port, grace_ms)


@backend.command()
@HOST
@PORT
@GRACE
@click.option("--model", default="simulated", show_default=True, help="Served model name.")
@click.option("--context-length", type=click.IntRange(min=16), default=8192, show_default=True)
@click.option("--max-running-requests", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--max-queued-requests", type=click.IntRange(min=0), help="Default: no limit.")
@click.option("--kv-tokens", type=click.IntRange(min=16), default=200_000, show_default=True)
@click.option("--prefill-us-per-token", type=click.IntRange(min=0), default=50, show_default=True)
@click.option("--step-base-us", type=click.IntRange(min=0), default=10_000, show_default=True)
@click.option("--step-us-per-sequence", type=click.IntRange(min=0), default=50, show_default=True)
@click.option("--natural-output-tokens", type=click.IntRange(min=4), default=512, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
def simulated(
    *,
    host: str,
    port: int,
    grace_ms: int,
    model: str,
    context_length: int,
    max_running_requests: int,
    max_queued_requests: int | None,
    kv_tokens: int,
    prefill_us_per_token: int,
    step_base_us: int,
    step_us_per_sequence: int,
    natural_output_tokens: int,
    seed: int,
) -> None:
    """A simulated worker: real clock, no model."""
    settings = SimulatedSettings(
        model=model,
        context_tokens=context_length,
        max_running_requests=max_running_requests,
        max_queued_requests=max_queued_requests,
        kv_tokens=kv_tokens,
        prefill_us_per_token=prefill_us_per_token,
        step_base_us=step_base_us,
        step_us_per_sequence=step_us_per_sequence,
        natural_output_tokens=natural_output_tokens,
        seed=seed,
    )
    _run(SimulatedEngine(settings), host, port, grace_ms)


def _run(engine: Engine, host: str, port: int, grace_ms: int) -> None:
    try:
        bound = listen(host, port)
        address = f"http://{host}:{bound.getsockname()[1]}"
        line = f"{engine.info.name} worker serves {engine.info.model} at {address}"
        run(engine, bound, grace_ms=grace_ms, announce=lambda: click.echo(line))
    except (PortUnavailable, EngineUnavailable) as error:
        raise click.ClickException(str(error)) from None
