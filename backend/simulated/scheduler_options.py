"""SGLang's scheduler flags as options of a command, and as one string."""

import math
import shlex
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import Profile


class Finite(click.FloatRange):
    """A number within bounds that is one: click takes `nan` for within any, `inf` too."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Fails for what is no number or outside."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


POSITIVE = click.IntRange(min=1)
_COUNT = click.IntRange(min=0)
_KINDS: dict[str, click.ParamType[Any]] = {
    "max_total_tokens": click.IntRange(min=16),
    "context_length": click.IntRange(min=16),
    "max_queued_requests": _COUNT,
    "prefill_decode_interval": _COUNT,
    "chunked_prefill_size": click.IntRange(min=-1),
    "schedule_conservativeness": Finite(min=0.0),
    "priority_scheduling_preemption_threshold": click.INT,
}
"""Flags whose values are neither positive counts nor one of a few words."""
_HINTS = get_type_hints(SchedulerFlags)


def scheduler_flags(command: click.decorators.FC) -> click.decorators.FC:
    """SGLang's flags of the scheduler, under its names; unset ones follow the profile."""
    for flag in reversed(fields(SchedulerFlags)):
        name = "--" + flag.name.replace("_", "-")
        if isinstance(flag.default, bool):
            command = click.option(name, flag.name, is_flag=True)(command)
            continue
        names = [name, "--kv-tokens"] if flag.name == "max_total_tokens" else [name]
        kind = _KINDS.get(flag.name, POSITIVE)
        if get_origin(_HINTS[flag.name]) is Literal:
            kind = click.Choice(get_args(_HINTS[flag.name]))
        profiled = flag.name in ("max_total_tokens", "context_length")
        told = "the profile's" if profiled else "no limit" if flag.default is None else flag.default
        command = click.option(*names, flag.name, type=kind, help=f"[default: {told}]")(command)
    return command


def flags_of(profile: Profile, chosen: Mapping[str, Any]) -> SchedulerFlags:
    """The flags of a replica: those chosen (None is not chosen), the profile's, the defaults."""
    given: dict[str, Any] = {
        "max_total_tokens": profile.kv_tokens,
        "context_length": profile.context_tokens,
    }
    for flag in fields(SchedulerFlags):
        if chosen.get(flag.name) is not None:
            given[flag.name] = chosen[flag.name]
    return replace(SchedulerFlags(), **given)


def shown_flags(profile: Profile, flags: SchedulerFlags) -> str:
    """Those that differ from what the profile and SGLang preset, as they are given."""
    preset = flags_of(profile, {})
    words = []
    for flag in fields(SchedulerFlags):
        value = getattr(flags, flag.name)
        if value != getattr(preset, flag.name):
            name = "--" + flag.name.replace("_", "-")
            words += [name] if value is True else [name, str(value)]
    return shlex.join(words)


def read_scheduler_flags(text: str) -> Mapping[str, Any]:
    """Flags as they are given to `weir backend simulated`, such as `--radix-eviction-policy slru`.
    What is not named is None. Raises ValueError with one line."""

    @click.command(add_help_option=False)
    @scheduler_flags
    def flags(**_: Any) -> None:
        pass

    try:
        context = flags.make_context("flags", shlex.split(text))
    except click.UsageError as error:
        raise ValueError(error.format_message()) from None
    return context.params
