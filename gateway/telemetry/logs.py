"""Logging without what must not be in a log: an exception's message may quote a prompt or a key."""

import asyncio
import logging
import sys
import threading
from types import TracebackType
from typing import Any, TextIO

from prometheus_client import Counter

from gateway.telemetry.log_lines import JsonLines, Lines, TextLines, name_of, stack_of

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
FORMATS = ("text", "json")
REQUEST_LEVELS = {"failed": logging.WARNING, "all": logging.INFO, "none": logging.CRITICAL + 1}
"""From which level on lines about requests are written (`request_lines`)."""
REQUESTS = logging.getLogger("gateway.requests")
_FORMS: dict[str, type[Lines]] = {"text": TextLines, "json": JsonLines}
LOST = Counter(
    "weir_log_lines_lost_total",
    "Lines of the log that could not be made or written: a bug, or a full disk.",
)
_log = logging.getLogger(__name__)


class _Quiet(logging.StreamHandler[TextIO]):
    """Where a line cannot be made or written, Python's own would print the message's arguments,
    which may be a prompt."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Count it."""
        LOST.inc()


def configure_logging(level: str = "INFO", form: str = "text", requests: str = "failed") -> None:
    """One line an event, UTC, to standard error; `LEVELS`, `FORMATS`, `REQUEST_LEVELS`."""
    handler = _Quiet(sys.stderr)
    handler.setFormatter(_FORMS[form]())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    REQUESTS.setLevel(max(logging.getLogger().level, REQUEST_LEVELS[requests]))
    logging.captureWarnings(True)
    # Exporters log each failure; who uses them tells of the first, and counts.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


def name_gateway(gateway_id: str) -> None:
    """From now on JSON lines say which gateway writes them."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, Lines):
            handler.formatter.gateway = gateway_id


def log_failure(
    log: logging.Logger, error: BaseException, message: str, *arguments: object
) -> None:
    """Log an unexpected exception by its type and stack, its own text left out."""
    extra = {"error_type": type(error).__name__}
    log.error(message + ": %s at %s", *arguments, name_of(error), stack_of(error), extra=extra)


def log_end_of_loop(task: asyncio.Task[None]) -> None:
    """Log that what should run for ever has ended by an exception: a callback of its task."""
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        log_failure(_log, error, "a background loop ended")


def log_loop_failure(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The event loop's handler of what nobody caught: by type and place; asyncio's own would write
    the exception's words and the values that a callback was called with."""
    error = context.get("exception")
    task = context.get("task") or context.get("future")
    coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
    name = getattr(coroutine, "__qualname__", "a callback")
    if isinstance(error, BaseException):
        log_failure(_log, error, "nobody caught what %s raised", name)
    else:
        _log.error("the event loop complains of %s", name)


def log_uncaught() -> None:
    """What ends the process or a thread is logged like all else, instead of being printed whole."""

    def ends(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        log_failure(_log, error, "the process ends")

    def ends_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            log_failure(_log, args.exc_value, "a thread ends")

    def is_unraisable(args: "sys.UnraisableHookArgs") -> None:
        if args.exc_value is not None:
            log_failure(_log, args.exc_value, "what nobody could catch was raised")

    sys.excepthook = ends
    threading.excepthook = ends_thread
    sys.unraisablehook = is_unraisable
