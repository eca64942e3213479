"""Failures on command, for the tests of whatever talks to this worker."""

from collections.abc import AsyncIterator
from typing import Annotated, Literal

import msgspec

from backend.sglang_http.generation import Delta
from backend.sglang_http.refusals import EngineFailure

FaultKind = Literal[
    "die",
    "die_midstream",
    "stall",
    "slow",
    "error_500",
    "error_event",
    "queue_full",
    "drop_usage",
    "drop_finish",
]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One way to fail, for the next `count` requests.

    - `die`: the worker process is killed once the request has `after_tokens` tokens.
    - `die_midstream`: the connection is cut there, without an end.
    - `stall`: no token comes after them until the request is aborted.
    - `slow`: each token after them takes `delay_ms` longer.
    - `error_500`: HTTP 500 instead of an answer; nothing is generated.
    - `error_event`: an error event in the 200 stream after them (HTTP 500 without a stream).
    - `queue_full`: refused as by a full queue (503, or in a stream 200 and an error event).
    - `drop_usage`: the closing usage is left out.
    - `drop_finish`: after them the stream ends with neither finish reason nor usage.
    """

    kind: FaultKind
    after_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    count: Annotated[int, msgspec.Meta(ge=1)] | None = 1
    """How many requests fail so; None is until the faults are cleared."""
    delay_ms: Annotated[int, msgspec.Meta(ge=0, le=600_000)] = 1000
    rid_prefix: str = ""
    """Only requests whose rid begins so."""


class FaultPlan:
    """Faults waiting for requests; each request takes the first that fits it."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Fault, int | None]] = []

    def add(self, fault: Fault) -> None:
        """Arm it behind those armed before."""
        self._waiting.append((fault, fault.count))

    def clear(self) -> None:
        """Disarm all of them."""
        self._waiting.clear()

    def armed(self) -> list[Fault]:
        """Faults that still wait for a request."""
        return [fault for fault, _ in self._waiting]

    def take(self, rid: str) -> Fault | None:
        """The fault that this request shows, used up by it; None mostly."""
        for position, (fault, left) in enumerate(self._waiting):
            if not rid.startswith(fault.rid_prefix):
                continue
            if left is not None:
                if left == 1:
                    del self._waiting[position]
                else:
                    self._waiting[position] = (fault, left - 1)
            return fault
        return None


class ConnectionCut(Exception):
    """The connection is to be closed here, without an end."""


class EndedEarly(Exception):
    """The stream is to end here without a finish reason."""


class FaultedStream:
    """Passes one request's deltas on until its fault strikes."""

    def __init__(self, fault: Fault | None) -> None:
        self._fault = fault

    @property
    def drops_usage(self) -> bool:
        """Whether the closing usage is left out."""
        return self._fault is not None and self._fault.kind == "drop_usage"

    async def pass_on(
        self, deltas: AsyncIterator[tuple[int, Delta]]
    ) -> AsyncIterator[tuple[int, Delta]]:
        """The deltas. Raises ConnectionCut, EndedEarly or EngineFailure once the fault's tokens
        have gone by."""
        seen = 0
        async for index, delta in deltas:
            if self._fault is not None and seen >= self._fault.after_tokens:
                _strike(self._fault)
            yield index, delta
            seen += delta.tokens


def _strike(fault: Fault) -> None:
    """Fail here, where it is a failure of the HTTP side; the engine shows the others."""
    if fault.kind == "die_midstream":
        raise ConnectionCut
    if fault.kind == "drop_finish":
        raise EndedEarly
    if fault.kind == "error_event":
        raise EngineFailure("A failure on command.", status=500, event_kind="INTERNAL_SERVER_ERROR")
