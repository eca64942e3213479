"""Prometheus' text format, as far as an engine's counters need it.

Of an engine's text, which may hold thousands of lines, only those that are asked for are read.
Lines that are none are passed over: an engine that says one thing badly still says the others.
"""

import math
import re
from collections.abc import Collection, Iterator
from hashlib import blake2b
from typing import NamedTuple

from billing.domain.engine_counters import EngineCounters

_LINE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*\Z")
_LABEL = re.compile(r'[ \t]*([a-zA-Z_]\w*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(?:,|\Z)')
_ESCAPED = re.compile(r"\\(.)")
COUNT_END = 2.0**53
"""Beyond it a value in this format is no longer exact."""
_PREFIX = "sglang:"
_TOTALS = {
    "prompt_tokens": "prompt_tokens_total",
    "output_tokens": "generation_tokens_total",
    "cached_tokens": "cached_tokens_total",
    "requests": "num_requests_total",
    "aborted": "num_aborted_requests_total",
}
_RUNNING = "num_running_reqs"
_ANSWERED = "http_responses_total"
_HEALTH = frozenset({"/health", "/health_generate"})
_STARTED = ("process_start_time_seconds", f"{_PREFIX}startup_time_seconds")
_WANTED = frozenset(
    {*_STARTED, *(f"{_PREFIX}{each}" for each in (*_TOTALS.values(), _RUNNING, _ANSWERED))}
)


class Reading(NamedTuple):
    """One line: a name, its labels, its value."""

    name: str
    labels: dict[str, str]
    value: float


def readings(text: str, names: Collection[str]) -> Iterator[Reading]:
    """The lines of these names, in order."""
    for line in text.split("\n"):
        if line.startswith("#"):
            continue
        name = re.split(r"[{ \t]", line, maxsplit=1)[0]
        if name not in names:
            continue
        found = _LINE.match(line.rstrip("\r"))
        labels = None if found is None else _labels(found[2])
        if found is None or labels is None:
            continue
        try:
            yield Reading(name, labels, float(found[3]))
        except ValueError:
            continue


def read_counters(text: str) -> EngineCounters:
    """An SGLang worker's counters, each summed over its labels; what is absent is None.

    Raises ValueError where one is no count: such a text witnesses nothing.
    """
    sums: dict[str, int] = {}
    started = []
    for name, labels, value in readings(text, _WANTED):
        if name in _STARTED:
            started.append((name, sorted(labels.items()), value))
        elif name != f"{_PREFIX}{_ANSWERED}" or labels.get("endpoint") in _HEALTH:
            sums[name] = sums.get(name, 0) + _whole(value)

    def count(name: str) -> int | None:
        return sums.get(f"{_PREFIX}{name}")

    return EngineCounters(
        mark=_mark(started),
        running=count(_RUNNING),
        health=count(_ANSWERED),
        **{field: count(name) for field, name in _TOTALS.items()},
    )


def _whole(value: float) -> int:
    if not (math.isfinite(value) and 0 <= value < COUNT_END and value == int(value)):
        raise ValueError("a counter that is no count")
    return int(value)


def _mark(started: list[tuple[str, list[tuple[str, str]], float]]) -> str | None:
    if not started:
        return None
    return blake2b(repr(sorted(started)).encode(), digest_size=8).hexdigest()


def _labels(text: str | None) -> dict[str, str] | None:
    """None where they are none."""
    labels: dict[str, str] = {}
    rest = (text or "").strip()
    at = 0
    while at < len(rest):
        found = _LABEL.match(rest, at)
        if found is None:
            return None
        labels[found[1]] = _ESCAPED.sub(lambda each: "\n" if each[1] == "n" else each[1], found[2])
        at = found.end()
    return labels
