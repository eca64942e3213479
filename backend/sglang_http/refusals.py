"""Answers that say no, in SGLang's shape: `{"object":"error","message","type","param","code"}`."""

import msgspec


class ErrorBody(msgspec.Struct, frozen=True):
    """SGLang's error object, in its field order."""

    object: str
    message: str
    type: str
    param: None
    code: int


class Refused(Exception):
    """A request that is answered with an error status.

    The message names limits and fields. It never holds what the request said.
    """

    def __init__(self, message: str, *, status: int = 400, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind

    def body(self) -> bytes:
        """The JSON answer."""
        return msgspec.json.encode(
            ErrorBody("error", self.message, self.kind, None, self.status),
        )


class EngineFailure(Exception):
    """A request that the engine gave up after taking it: queue full, broken step.

    Without streaming it is an HTTP status; in a stream, whose 200 has gone out, an error event.
    """

    def __init__(self, message: str, *, status: int, event_kind: str) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.event_kind = event_kind

    def refused(self) -> Refused:
        """The same as an answer without a stream, whose type is the status as text."""
        return Refused(self.message, status=self.status, kind=str(self.status))

    def event_body(self) -> ErrorBody:
        """The same as the object of a stream's error event."""
        return ErrorBody("error", self.message, self.event_kind, None, self.status)


def queue_full() -> EngineFailure:
    """The engine's queue limit is reached."""
    return EngineFailure("The request queue is full.", status=503, event_kind="SERVICE_UNAVAILABLE")


def engine_broke() -> EngineFailure:
    """A step of the engine failed; what it said stays in the worker's log."""
    return EngineFailure(
        "The engine failed on this request.", status=500, event_kind="INTERNAL_SERVER_ERROR"
    )
