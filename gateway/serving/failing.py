"""What is counted, logged and traced of a request that is answered with an error."""

from gateway.errors import WeirError
from gateway.serving.arrival import Arrival
from gateway.telemetry.error_answers import tell_error


def tell_failed(arrival: Arrival, error: WeirError) -> None:
    """The request is answered with this error, or would be."""
    tell_error("v1", error.status, error.code)
    arrival.trace.failed(error)
