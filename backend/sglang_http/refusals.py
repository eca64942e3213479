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


class InputTooLong(Refused):
    """A prompt within the context that the KV pool cannot hold. SGLang finds it in the scheduler,
    after a stream's 200."""

    in_stream: "LateRefusal | None" = None
    """How a stream says it, where the request asked for one."""


class LateRefusal(msgspec.Struct, frozen=True):
    """What a stream's refusal needs to know of its request."""

    rid: str
    model: str
    include_usage: bool


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


def thrown_out() -> EngineFailure:
    """A request of better priority took its place in the queue."""
    return EngineFailure(
        "The request is aborted by a higher priority request.",
        status=503,
        event_kind="SERVICE_UNAVAILABLE",
    )


def out_of_memory() -> EngineFailure:
    """The KV pool does not hold it even alone."""
    return EngineFailure(
        "Out of memory even after retracting all other requests in the decode batch. "
        "Aborting the last request.",
        status=500,
        event_kind="INTERNAL_SERVER_ERROR",
    )


def engine_broke() -> EngineFailure:
    """A step of the engine failed; what it said stays in the worker's log."""
    return EngineFailure(
        "The engine failed on this request.", status=500, event_kind="INTERNAL_SERVER_ERROR"
    )
