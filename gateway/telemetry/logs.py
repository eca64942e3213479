"""Logging without what must not be in a log: an exception's message may quote a prompt or a key."""

import logging
import sys
import time
import traceback


def configure_logging(level: str = "INFO") -> None:
    """One line an event, UTC, to standard error."""
    formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(name)s %(message)s")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler], force=True)


def log_failure(
    log: logging.Logger, error: BaseException, message: str, *arguments: object
) -> None:
    """Log an unexpected exception by its type and stack, its own text left out."""
    frames = traceback.extract_tb(error.__traceback__)
    stack = " < ".join(
        f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames[::-1]
    )
    log.error(message + ": %s at %s", *arguments, type(error).__name__, stack)
