"""Failures on command, for the tests of whatever talks to this worker."""

import time
from collections.abc import AsyncIterator, Callable
from math import prod
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
    "reset",
    "stale_load",
    "wrong_usage",
]
REPLICA_KINDS = frozenset({"stall", "slow"})
"""What the whole replica can show, from its arming until it is cleared."""

FACTOR_MAX = 1000.0
"""How much slower, or faster, all faults together make a replica."""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One way to fail, for the next `count` requests, or with `scope` "replica" for all of them.

    - `die`: the worker process, all its replicas with it, is killed once the request has
      `after_tokens` tokens.
    - `die_midstream`: the connection is cut there, without an end.
    - `stall`: no token comes after them until the request is aborted. Of a replica: no step ends.
    - `slow`: each token after them comes at least `delay_ms` after the one before. Of a replica:
      every step takes `factor` times as long.
    - `error_500`: HTTP 500 instead of an answer; nothing is generated.
    - `error_event`: an error event in the 200 stream after them (HTTP 500 without a stream).
    - `queue_full`: refused as by a full queue (503, or in a stream 200 and an error event).
    - `drop_usage`: the closing usage is left out.
    - `drop_finish`: after them the stream ends with neither finish reason nor usage.
    - `reset`: the connection is reset (RST) there.
    - `wrong_usage`: the closing usage counts `amount` more output tokens than there were.
    - `stale_load`: /v1/loads keeps its present snapshot for `delay_ms`, whatever is asked for.
    """

    kind: FaultKind
    after_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    count: Annotated[int, msgspec.Meta(ge=1)] | None = 1
    """How many requests fail so; None is until the faults are cleared."""
    delay_ms: Annotated[int, msgspec.Meta(ge=0, le=600_000)] = 1000
    rid_prefix: str = ""
    """Only requests whose rid begins so."""
    scope: Literal["request", "replica"] = "request"
    factor: Annotated[float, msgspec.Meta(ge=1 / FACTOR_MAX, le=FACTOR_MAX)] = 2.0
    amount: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31)] = 1

    def __post_init__(self) -> None:
        """Raises ValueError for a kind that the whole replica cannot show."""
        if self.scope == "replica" and self.kind not in REPLICA_KINDS:
            raise ValueError("only stall and slow have the scope replica")


class FaultPlan:
    """Faults waiting for requests; each request takes the first that fits it."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Fault, int | None]] = []
        self.replica: list[Fault] = []
        """What the whole replica shows."""
        self._stale: tuple[Fault, float] | None = None
        """With the instant of the monotonic clock until which it holds."""
        self.on_change: Callable[[], None] = lambda: None
        self.on_stale: Callable[[], None] = lambda: None
        """Called when the load is to keep its present snapshot, in place of any older one."""

    def add(self, fault: Fault) -> None:
        """Arm it behind those armed before."""
        if fault.kind == "stale_load":
            self._stale = (fault, time.monotonic() + fault.delay_ms / 1000)
            self.on_stale()
        elif fault.scope == "replica":
            self.replica.append(fault)
        else:
            self._waiting.append((fault, fault.count))
        self.on_change()

    def clear(self) -> None:
        """Disarm all of them."""
        self._waiting.clear()
        self.replica.clear()
        self._stale = None
        self.on_change()

    def armed(self) -> list[Fault]:
        """Faults that still wait for a request, and those of the whole replica that hold."""
        stale = self.stale
        loads = [] if stale is None else [stale]
        return [fault for fault, _ in self._waiting] + self.replica + loads

    @property
    def stale(self) -> Fault | None:
        """The fault by which the load keeps its snapshot, until its time is over."""
        if self._stale is not None and time.monotonic() >= self._stale[1]:
            self._stale = None
        return None if self._stale is None else self._stale[0]

    @property
    def stalls(self) -> bool:
        """Whether the whole replica stands still."""
        return any(fault.kind == "stall" for fault in self.replica)

    @property
    def slowness(self) -> float:
        """How many times as long every step takes: all factors together, within what one may be."""
        product = prod(fault.factor for fault in self.replica if fault.kind == "slow")
        return min(max(product, 1 / FACTOR_MAX), FACTOR_MAX)

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

    def __init__(self, *, reset: bool = False) -> None:
        super().__init__()
        self.reset = reset
        """Whether by a reset."""


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

    @property
    def strikes(self) -> bool:
        """Whether the stream may break off here, so that somebody has to look at every token."""
        return self._fault is not None

    @property
    def overcount(self) -> int:
        """How many output tokens too many the closing usage has."""
        if self._fault is None or self._fault.kind != "wrong_usage":
            return 0
        return self._fault.amount

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
    if fault.kind in ("die_midstream", "reset"):
        raise ConnectionCut(reset=fault.kind == "reset")
    if fault.kind == "drop_finish":
        raise EndedEarly
    if fault.kind == "error_event":
        raise EngineFailure("A failure on command.", status=500, event_kind="INTERNAL_SERVER_ERROR")
