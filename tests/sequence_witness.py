"""What an engine ran, by its own ledger, and for which gateway: the witness of INV-2."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ABORT_MS = 500
"""A gateway waits so long for an engine to end what it was asked to abort; then its place is free,
whatever the engine does (docs/architecture.md, *How a request ends*)."""


@dataclass(frozen=True)
class Span:
    """A sequence, from the beginning of its prompt step to its end. Unix ms."""

    request_id: str
    gateway: int | None
    """Which gateway was asked; None where no test knows the request."""
    started_ms: int
    ended_ms: int


def spans(entries: Sequence[Any], asked: Mapping[str, int]) -> list[Span]:
    """Of a ledger's entries all that ran, but for the engine's own questions to itself."""
    found = [
        Span(entry["rid"][:32], asked.get(entry["rid"][:32]), started_ms, entry["ended_at_ms"])
        for entry in entries
        if not entry["health"] and (started_ms := entry["started_at_ms"]) is not None
    ]
    return sorted(found, key=lambda span: (span.started_ms, span.ended_ms))


def crowds(ran: Sequence[Span]) -> Iterator[tuple[int, list[Span]]]:
    """Who ran together, at each start: only there can there be more than before."""
    for one in ran:
        at_ms = one.started_ms
        yield at_ms, [each for each in ran if each.started_ms <= at_ms < each.ended_ms]


def told(ran: Sequence[Span], **instants_ms: int) -> str:
    """For a failure's message: who ran from when to when, and what else happened when."""
    zero_ms = min((span.started_ms for span in ran), default=0)
    lines = [
        f"{span.started_ms - zero_ms:6}-{span.ended_ms - zero_ms:6} ms gateway {span.gateway} "
        f"{span.request_id}"
        for span in ran
    ]
    marks = [f"{name} {at_ms - zero_ms} ms" for name, at_ms in instants_ms.items()]
    return "\n".join([", ".join(marks), *lines])
