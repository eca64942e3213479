"""Which request a line of the log belongs to. What a request begins (tasks, timers) inherits it."""

from contextvars import Context, ContextVar
from typing import NamedTuple
from uuid import UUID


class LogContext(NamedTuple):
    """What every line of a request has; empty outside requests."""

    request_id: UUID | None = None
    trace_id: int = 0
    """0: it is not traced."""
    tenant: str | None = None
    key: str | None = None
    """The key's id."""
    model: str | None = None


_NOBODY = LogContext()
_current: ContextVar[LogContext] = ContextVar("log_context", default=_NOBODY)


def begin_request(request_id: UUID, trace_id: int = 0) -> None:
    """From now on the running task, and each that it starts, logs for this request. Call it in a
    task of the request's own, so that nothing else inherits it."""
    _current.set(LogContext(request_id, trace_id))


def name_caller(tenant: str, key: str) -> None:
    """It is known now who asks, by ids."""
    _current.set(_current.get()._replace(tenant=tenant, key=key))


def name_model(model: str) -> None:
    """It is known now which registered model is asked for."""
    _current.set(_current.get()._replace(model=model))


def name_trace(trace_id: int) -> None:
    """It is known now which trace it is in."""
    _current.set(_current.get()._replace(trace_id=trace_id))


def outside_requests() -> Context:
    """The context of a task that outlives the request that happens to begin it."""
    return Context()


def current() -> LogContext:
    """The request that the running task works for."""
    return _current.get()
