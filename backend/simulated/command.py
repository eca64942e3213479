"""`weir backend simulated`: one or more simulated replicas in one process."""

from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from backend.sglang_http.command import run_workers, serving_options
from backend.simulated.engine import SimulatedEngine
from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import DEFAULT_PROFILE, PROFILES
from backend.simulated.settings import SimulatedSettings
from backend.simulated.startup import realistic_start_up_ms

_POSITIVE = click.IntRange(min=1)
_COUNT = click.IntRange(min=0)
_KINDS: dict[str, click.ParamType[Any]] = {
    "max_total_tokens": click.IntRange(min=16),
    "context_length": click.IntRange(min=16),
    "max_queued_requests": _COUNT,
    "prefill_decode_interval": _COUNT,
    "chunked_prefill_size": click.IntRange(min=-1),
    "schedule_conservativeness": click.FloatRange(min=0.0),
    "priority_scheduling_preemption_threshold": click.INT,
}
"""Flags whose values are neither positive counts nor one of a few words."""
_HINTS = get_type_hints(SchedulerFlags)


class StartUp(click.ParamType[float | None]):
    """Milliseconds, or `realistic`, which is None."""

    name = "MS|realistic"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | None:
        """Fails for what is neither."""
        if value == "realistic":
            return None
        return float(click.FloatRange(min=0.0)(value, param, ctx))


def scheduler_flags(command: click.decorators.FC) -> click.decorators.FC:
    """SGLang's flags of the scheduler, under its names; unset ones follow the profile."""
    for flag in reversed(fields(SchedulerFlags)):
        name = "--" + flag.name.replace("_", "-")
        if isinstance(flag.default, bool):
            command = click.option(name, flag.name, is_flag=True)(command)
            continue
        names = [name, "--kv-tokens"] if flag.name == "max_total_tokens" else [name]
        kind = _KINDS.get(flag.name, _POSITIVE)
        if get_origin(_HINTS[flag.name]) is Literal:
            kind = click.Choice(get_args(_HINTS[flag.name]))
        profiled = flag.name in ("max_total_tokens", "context_length")
        told = "the profile's" if profiled else "no limit" if flag.default is None else flag.default
        command = click.option(*names, flag.name, type=kind, help=f"[default: {told}]")(command)
    return command


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
    type=click.FloatRange(min=0.001, max=1000),
    default=1.0,
    show_default=True,
    help="Simulated seconds in a real one.",
)
@scheduler_flags
@click.option("--stream-interval", type=_POSITIVE, default=1, show_default=True)
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
def simulated(*, host: str, port: int, grace_ms: int, replicas: int, **given: Any) -> None:
    """A simulated worker: SGLang's scheduler over a model of time, no model of language."""
    run_workers(
        [SimulatedEngine(replica_settings(given, number)) for number in range(replicas)],
        host,
        port,
        grace_ms,
    )


def replica_settings(given: dict[str, Any], replica: int) -> SimulatedSettings:
    """What the options say of one of the replicas. Each draws its own start-up; all give the same
    text for the same prompt."""
    profile = PROFILES[given["profile"]]
    flags = SchedulerFlags(
        max_total_tokens=profile.kv_tokens, context_length=profile.context_tokens
    )
    chosen = {
        flag.name: given[flag.name]
        for flag in fields(SchedulerFlags)
        if given[flag.name] is not None
    }
    start_up_ms = given["start_up"]
    return SimulatedSettings(
        model=given["model"],
        profile=profile,
        flags=replace(flags, **chosen),
        speed=given["speed"],
        stream_interval=given["stream_interval"],
        reports_cache=not given["no_cache_report"],
        start_up_ms=(
            realistic_start_up_ms(given["seed"] + replica) if start_up_ms is None else start_up_ms
        ),
        natural_output_tokens=given["natural_output_tokens"],
        seed=given["seed"],
    )
