"""What is counted, logged and traced of a request that is answered with an error."""

from gateway.domain.tenant import MAX_WAIT_MS
from gateway.errors import WeirError
from gateway.serving.arrival import Arrival
from gateway.serving.queue.asked import max_wait_ms
from gateway.serving.queue.refusals import WaitTooLong
from gateway.telemetry.error_answers import tell_error


def tell_failed(arrival: Arrival, error: WeirError) -> None:
    """The request is answered with this error, or would be."""
    by_client = _was_cut_short(arrival, error)
    is_fault = error.status >= 500 and not by_client
    tell_error("v1", error.status, error.code, is_fault=is_fault)
    arrival.trace.failed(error, by_client=by_client)


def _was_cut_short(arrival: Arrival, error: WeirError) -> bool:
    """Whether there was no place in a time that the client itself made shorter than it is for who
    says nothing. Such a 503 is counted, but is no failure of ours: it may be polled for."""
    if not isinstance(error, WaitTooLong):
        return False
    asked_ms = max_wait_ms(arrival.headers)
    return asked_ms is not None and asked_ms < MAX_WAIT_MS
