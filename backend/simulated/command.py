"""`weir backend simulated`: one or more simulated replicas in one process."""

from pathlib import Path
from typing import Any

import click

from backend.sglang_http.command import run_workers, serving_options
from backend.simulated.engine import SimulatedEngine
from backend.simulated.profiles import DEFAULT_PROFILE, PROFILES
from backend.simulated.scheduler_options import POSITIVE, Finite, flags_of, scheduler_flags
from backend.simulated.settings import SimulatedSettings
from backend.simulated.startup import realistic_start_up_ms


class StartUp(click.ParamType[float | None]):
    """Milliseconds, or `realistic`, which is None."""

    name = "MS|realistic"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | None:
        """Fails for what is neither."""
        if value == "realistic":
            return None
        return Finite(min=0.0).convert(value, param, ctx)


@click.command()
@click.option("--model", default="simulated", show_default=True, help="Served model name.")
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default=DEFAULT_PROFILE.name,
    show_default=True,
    help="Step times, KV pool and context of a kind of replica.",
)
@click.option(
    "--speed",
    type=Finite(min=0.001, max=1000),
    default=1.0,
    show_default=True,
    help="Simulated seconds in a real one.",
)
@scheduler_flags
@click.option("--stream-interval", type=POSITIVE, default=1, show_default=True)
@click.option("--no-cache-report", is_flag=True, help="Answers say nothing of cached tokens.")
@click.option("--natural-output-tokens", type=click.IntRange(min=4), default=512, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--start-up",
    type=StartUp(),
    default="0",
    show_default=True,
    help="How long before it serves, in simulated milliseconds; realistic: minutes, drawn.",
)
@click.option(
    "--replicas",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="So many in this process, on ports from --port on.",
)
@serving_options
def simulated(
    *,
    host: str,
    port: int,
    grace_ms: int,
    ledger_file: Path | None,
    replicas: int,
    **given: Any,
) -> None:
    """A simulated worker: SGLang's scheduler over a model of time, no model of language."""
    run_workers(
        [SimulatedEngine(replica_settings(given, number)) for number in range(replicas)],
        host,
        port,
        grace_ms,
        ledger_file,
    )


def replica_settings(given: dict[str, Any], replica: int) -> SimulatedSettings:
    """What the options say of one of the replicas. Each draws its own start-up; all give the same
    text for the same prompt."""
    profile = PROFILES[given["profile"]]
    start_up_ms = given["start_up"]
    return SimulatedSettings(
        model=given["model"],
        profile=profile,
        flags=flags_of(profile, given),
        speed=given["speed"],
        stream_interval=given["stream_interval"],
        reports_cache=not given["no_cache_report"],
        start_up_ms=(
            realistic_start_up_ms(given["seed"] + replica) if start_up_ms is None else start_up_ms
        ),
        natural_output_tokens=given["natural_output_tokens"],
        seed=given["seed"],
    )
