"""From the engines' events to the client's, and how that ended."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from billing.domain.usage_record import Outcome
from gateway.errors import WeirError, WorkerFailed, WorkerTimeout
from gateway.serving.answer import Answer
from gateway.serving.choice import Choice
from gateway.serving.choices import ChoiceStreams
from gateway.serving.live import LiveRequest
from gateway.serving.ports import EngineRefused
from gateway.telemetry.logs import log_failure
from gateway.wire.refusal import refusal
from gateway.wire.upstream import Event

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ending:
    """How a request ended and, unless it completed, what a client that is still there is told."""

    outcome: Outcome
    failure: WeirError | None = None


async def relay(
    streams: ChoiceStreams,
    choices: Sequence[Choice],
    answer: Answer,
    live: LiveRequest,
    sent: Collection[str] = (),
) -> Ending:
    """Route, read every stream to its end and hand on what comes. Does not raise. `sent` are the
    tenant's fields that went upstream."""
    if live.stopped is not None:
        return Ending(live.stopped.outcome, live.stopped.error)
    broken = False
    outcome = Outcome.WORKER_FAILED
    failure: WeirError = WorkerFailed("the worker stopped before the end")
    try:
        async for choice, data, event in streams.events():
            if not broken:
                broken = not await _taken(answer, choice, data, event)
                if broken:
                    live.abort_streams()
    except EngineRefused as error:
        # What other choices have generated is used, so it is no refusal any more.
        began = any(choice.deltas for choice in choices)
        told = refusal(error.status, error.message, sent)
        return Ending(Outcome.WORKER_FAILED if began else Outcome.REFUSED, told)
    except WeirError as error:
        outcome, failure = _outcome(error, streams), error
    except Exception as error:  # noqa: BLE001 - a bug of ours is recorded and logged as ours
        log_failure(_log, error, "a stream of the gateway failed")
        live.abort_streams()
        broken = True
    if broken:
        return Ending(Outcome.WORKER_FAILED, WorkerFailed("the gateway failed on this request"))
    if all(choice.finished for choice in choices):
        return Ending(Outcome.COMPLETED)
    if live.stopped is not None:
        return Ending(live.stopped.outcome, live.stopped.error)
    return Ending(outcome, failure)


def _outcome(error: WeirError, streams: ChoiceStreams) -> Outcome:
    if streams.is_refused:
        return Outcome.REFUSED
    return Outcome.TIMED_OUT if isinstance(error, WorkerTimeout) else Outcome.WORKER_FAILED


async def _taken(answer: Answer, choice: Choice, data: bytes, event: Event) -> bool:
    """Whether the answer took the event. The streams are read on either way: only their ends tell
    what was used."""
    try:
        await answer.take(choice, data, event)
    except Exception as error:  # noqa: BLE001 - a bug of ours is recorded and logged as ours
        log_failure(_log, error, "an event could not be handed on")
        return False
    return True
