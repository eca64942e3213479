"""Lines of the log: one an event, in text or JSON, that no value can forge and that quote nobody.

Of an exception only types and places in the code are shown: its own words may be a prompt, a key
or a row. Of what other libraries log only their template and numbers are, for the same reason.
"""

import errno
import json
import logging
import re
import time
import traceback
from typing import Any

from gateway.telemetry.log_context import current

MESSAGE_CHARACTERS_MAX = 4_000
"""Longer messages are cut: a line is never megabytes."""
FIELDS = "fields"
"""The attribute of a record that holds more named values, strings and numbers."""
_OURS = frozenset({"gateway", "billing", "backend", "migrations"})
_CAUSES_MAX = 5
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PLAIN = re.compile(r"[^\s\"=]+")
_CONVERSION = re.compile(r"%%|%(?:\(\w*\))?[#0\- +]*[\d*]*(?:\.[\d*]+)?[a-zA-Z]")


def stack_of(error: BaseException) -> str:
    """Where it was raised, innermost first, by file, line and function."""
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(
        f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames[::-1]
    )


def name_of(error: BaseException) -> str:
    """Its type, and what the operating system calls it."""
    code = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    return type(error).__name__ if code is None else f"{type(error).__name__} {code}"


def told(error: BaseException) -> str:
    """An exception, and what caused it, by types and places alone."""
    parts: list[str] = []
    following: BaseException | None = error
    while following is not None and len(parts) < _CAUSES_MAX:
        parts.append(f"{name_of(following)} at {stack_of(following)}")
        hidden = following.__suppress_context__
        following = following.__cause__ or (None if hidden else following.__context__)
    return ", after ".join(parts)


class Lines(logging.Formatter):
    """What both forms have in common."""

    def __init__(self, gateway: str = "") -> None:
        super().__init__()
        self.gateway = gateway
        """Its id, once that is known."""

    def message_of(self, record: logging.LogRecord) -> str:
        """The message, with what was raised."""
        if record.name.partition(".")[0] in _OURS:
            message = record.getMessage()
        else:
            message = _of_others(record)
        if record.exc_info and record.exc_info[1] is not None:
            message = f"{message}: {told(record.exc_info[1])}"
        if len(message) > MESSAGE_CHARACTERS_MAX:
            message = message[:MESSAGE_CHARACTERS_MAX] + "…"
        return message

    def named(self, record: logging.LogRecord) -> dict[str, Any]:
        """The named values of a line, those that it has."""
        context = current()
        error_type = getattr(record, "error_type", None)
        if record.exc_info and record.exc_info[1] is not None:
            error_type = type(record.exc_info[1]).__name__
        found: dict[str, Any] = {
            "request_id": None if context.request_id is None else str(context.request_id),
            "trace_id": f"{context.trace_id:032x}" if context.trace_id else None,
            "error_type": error_type,
            **getattr(record, FIELDS, {}),
        }
        return {name: value for name, value in found.items() if value not in (None, "")}


class TextLines(Lines):
    """Time, level, logger, message, and the named values as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = f"{_instant(record)} {record.levelname} {record.name} {self.message_of(record)}"
        more = "".join(f" {name}={_plain(value)}" for name, value in self.named(record).items())
        return _CONTROL.sub(_escaped, line + more)


class JsonLines(Lines):
    """An object a line: ts, level, logger, message, gateway and the named values. ASCII alone, so
    that nothing in it ends a line, whoever reads it."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "ts": _instant(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.message_of(record),
        }
        if self.gateway:
            line["gateway"] = self.gateway
        return json.dumps(line | self.named(record))


def _instant(record: logging.LogRecord) -> str:
    ms = min(999, int(record.msecs))
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{ms:03}Z"


def _plain(value: object) -> str:
    """A value that cannot be taken for two."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _of_others(record: logging.LogRecord) -> str:
    """What another library says, without the values that it says it of: numbers are kept. Where
    there are none it may have put them in already, and where in its code it says so is all."""
    if isinstance(record.msg, BaseException):
        return name_of(record.msg)
    template = str(record.msg)
    if not record.args:
        return f"… at {record.filename}:{record.lineno} {record.funcName}"
    values = record.args if isinstance(record.args, tuple) else tuple(record.args.values())
    shown = iter(str(value) if isinstance(value, int | float) else "…" for value in values)
    return _CONVERSION.sub(lambda at: "%" if at[0] == "%%" else next(shown, "…"), template)
