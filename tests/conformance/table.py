"""All checks, and which kind of engine each needs.

Left out: log probabilities (the simulated worker has none and says so), and JSON that is no object,
which SGLang answers 500 and the simulated worker 400.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from conformance import (
    aborts,
    cache,
    chat,
    completions,
    counters,
    departures,
    generate,
    information,
    places,
    pool,
    refusals,
)
from conformance.engine import Engine

ROOMY = (
    chat, completions, generate, refusals, aborts, cache, information, counters, departures,
)  # fmt: skip
"""Need an engine with cache report, metrics, priorities without preemption, no queue limit and room
for what they ask."""
TIGHT = (pool, places)
"""Need the same with one running and two waiting places and a pool that is smaller than the
context."""


@dataclass(frozen=True)
class Check:
    """One statement about an engine's HTTP."""

    name: str
    run: Callable[[Engine], None]


def checks_of(modules: tuple[ModuleType, ...]) -> list[Check]:
    """The checks that these modules define, in their order."""
    return [
        Check(f"{module.__name__.rpartition('.')[2]}-{name.removeprefix('check_')}", function)
        for module in modules
        for name, function in vars(module).items()
        if name.startswith("check_") and function.__module__ == module.__name__
    ]


def named(check: Check) -> str:
    """Its name in a test's id."""
    return check.name


def run(check: Check, engine: Engine) -> None:
    """Run it on an engine that is at rest with an empty cache, and leave it so."""
    engine.come_to_rest()
    try:
        check.run(engine)
    finally:
        engine.come_to_rest()
