"""Every row of the billing policy (DESIGN 7), with an engine and a client that make it happen."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import engine_events as events
import pytest
from memory_gateway import MemoryGateway
from price_examples import a_price
from scripted_engine import HANG, Step

from billing.domain.price_book import PriceBook
from billing.domain.usage_record import Outcome, UsageRecord
from gateway.errors import WorkerFailed
from gateway.serving import live as live_module

PATIENCE_MS = 30_001
"""No worker may be silent for so long."""


class Moment(Enum):
    """What else happens at a step of a script."""

    LEAVE = auto()
    """The client goes."""
    SHUTDOWN = auto()
    """The gateway's grace time is over."""
    SILENCE = auto()
    """Time passes and nothing comes."""


@dataclass(frozen=True)
class PolicyCase:
    """One way to end, what is recorded of it, and whether the tenant pays for that."""

    outcome: Outcome
    script: Sequence[Step | Moment]
    prompt: int
    output: int
    pays: bool
    after_abort: Sequence[bytes] | None = None
    """What the engine still says once it was asked to stop; None is one that only hangs up."""


def _aborted(prompt: int, output: int) -> list[bytes]:
    return [events.finish("abort"), events.usage(prompt, output)]


_A_TOKEN = events.content("a", usage=events.counts(5, 1))
_CUT = WorkerFailed("cut")
_ANSWER = events.answer(["a", "b"])
_EMPTY = [events.role(), events.finish(), events.usage(5, 0)]
_O = Outcome

CASES = {
    "completed": PolicyCase(_O.COMPLETED, _ANSWER, 5, 2, pays=True),
    "completed, an empty answer": PolicyCase(_O.COMPLETED, _EMPTY, 5, 0, pays=True),
    "completed, and nobody there to read it": PolicyCase(
        _O.COMPLETED,
        [events.content("a"), events.finish(), Moment.LEAVE, HANG],
        5, 1, pays=True, after_abort=[events.usage(5, 1)],
    ),
    "client left while its prompt waited": PolicyCase(
        _O.CLIENT_CANCELLED, [Moment.LEAVE, HANG], 0, 0, pays=False, after_abort=_aborted(0, 0)
    ),
    "client left while its prompt was read": PolicyCase(
        _O.CLIENT_CANCELLED,
        [events.role(), Moment.LEAVE, HANG],
        5, 0, pays=False, after_abort=_aborted(5, 0),
    ),
    "client left after some tokens": PolicyCase(
        _O.CLIENT_CANCELLED, [_A_TOKEN, Moment.LEAVE, HANG],
        5, 3, pays=True, after_abort=_aborted(5, 3),
    ),
    "client left an engine that knows no abort": PolicyCase(
        _O.CLIENT_CANCELLED, [_A_TOKEN, Moment.LEAVE, HANG], 5, 1, pays=True
    ),
    "worker failed before its first event": PolicyCase(
        _O.WORKER_FAILED, [_CUT], 0, 0, pays=False
    ),
    "worker failed after some tokens": PolicyCase(
        _O.WORKER_FAILED, [_A_TOKEN, _CUT], 5, 1, pays=False
    ),
    "worker reported an error after some tokens": PolicyCase(
        _O.WORKER_FAILED, [_A_TOKEN, events.error(400)], 5, 1, pays=False
    ),
    "worker ended without a finish": PolicyCase(_O.WORKER_FAILED, [_A_TOKEN], 5, 1, pays=False),
    "timed out before a token": PolicyCase(
        _O.TIMED_OUT,
        [events.role(), Moment.SILENCE, HANG],
        5, 0, pays=False, after_abort=_aborted(5, 0),
    ),
    "timed out after some tokens": PolicyCase(
        _O.TIMED_OUT, [_A_TOKEN, Moment.SILENCE, HANG],
        5, 2, pays=False, after_abort=_aborted(5, 2),
    ),
    "refused": PolicyCase(_O.REFUSED, [events.error(400)], 0, 0, pays=False),
    "gateway stopped before a token": PolicyCase(
        _O.GATEWAY_LOST, [Moment.SHUTDOWN, HANG], 5, 0, pays=False, after_abort=_aborted(5, 0)
    ),
    "gateway stopped after some tokens": PolicyCase(
        _O.GATEWAY_LOST, [_A_TOKEN, Moment.SHUTDOWN, HANG],
        5, 2, pays=False, after_abort=_aborted(5, 2),
    ),
}  # fmt: skip
"""`taken_back` is an attempt's, never a request's; `resumed elsewhere` does not happen yet."""


async def record_of(
    case: PolicyCase, *, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> UsageRecord:
    """Make it happen on a gateway with a price; the one record, once all is settled and at rest."""
    monkeypatch.setattr(live_module, "_TICK_S", 0.001)
    gateway = MemoryGateway()
    gateway.directory.prices = PriceBook([a_price()])
    client = gateway.a_client(stream=stream)
    happens = {
        Moment.LEAVE: client.leave,
        Moment.SHUTDOWN: gateway.live.stop_all,
        Moment.SILENCE: lambda: gateway.clock.advance(PATIENCE_MS),
    }
    gateway.engine.scripts = [
        [happens[step] if isinstance(step, Moment) else step for step in case.script]
    ]
    gateway.engine.after_abort = [case.after_abort]
    watch = asyncio.create_task(gateway.live.run())
    await gateway.serve(client)
    watch.cancel()
    await asyncio.wait([watch])
    return gateway.assert_one_of_each(case.outcome)
