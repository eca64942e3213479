"""What a line of the log is, and what is never in one."""

import asyncio
import json
import logging
import sys
import threading
import warnings
from unittest import mock

import pytest
from log_capture import logging_to

from gateway.telemetry.log_lines import MESSAGE_CHARACTERS_MAX, JsonLines, TextLines
from gateway.telemetry.logs import (
    LOST,
    log_end_of_loop,
    log_failure,
    log_loop_failure,
    log_uncaught,
    name_gateway,
)

PROMPT = "a tenant's secret prompt"
LOG = logging.getLogger("gateway.test")


def fails(prompt: str) -> None:
    raise ValueError(f"cannot read {prompt!r}")


def caused() -> RuntimeError:
    """An error that quotes the prompt, after another that does."""
    try:
        try:
            fails(PROMPT)
        except ValueError as error:
            raise RuntimeError(PROMPT) from error
    except RuntimeError as error:
        found = error
    return found


def test_a_failure_is_logged_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    """What a tenant wrote may be in an exception's message: its type and stack are enough."""
    log_failure(LOG, caused(), "request %s failed", "rid")
    (line,) = caplog.messages
    assert line.startswith("request rid failed: RuntimeError at test_logs.py:")
    assert "caused" in line
    assert PROMPT not in caplog.text


def test_a_failure_that_was_never_raised_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    """No traceback, no crash."""
    log_failure(LOG, ValueError(PROMPT), "late")
    assert caplog.messages == ["late: ValueError at "]


def test_lines_are_utc_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line an event, with its level and where it comes from."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with logging_to("WARNING") as log:
        record = logging.LogRecord("gateway.w", logging.WARNING, "", 1, "hello %s", ("you",), None)
        record.created, record.msecs = 1.25, 250.0
        logging.getLogger().handle(record)
        LOG.info("not this")
    assert log.lines == ["1970-01-01T00:00:01.250Z WARNING gateway.w hello you"]


def test_a_line_of_json_has_all_that_is_known_by_name() -> None:
    """An object a line; what is not known is absent."""
    with logging_to(form="json") as log:
        LOG.info("first")
        name_gateway("g-1")
        log_failure(LOG, caused(), "second")
    first, second = log.objects
    assert first.keys() == {"ts", "level", "logger", "message"}
    assert (first["level"], first["logger"], first["message"]) == ("info", "gateway.test", "first")
    assert first["ts"].endswith("Z")
    assert second["gateway"] == "g-1"
    assert second["error_type"] == "RuntimeError"


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_in_a_value_makes_a_second_line(form: str) -> None:
    """Whatever a name has in it: line ends of every kind, escape sequences, an end of a string."""
    name = (
        'x\n2026-01-01T00:00:00.000Z ERROR gateway.a b\r\v\f\x1b[2J\x85\u2028\u2029\0", "level": "'
    )
    with logging_to(form=form) as log:
        LOG.warning("tenant %s", name)
        LOG.warning("tenant", extra={"fields": {"tenant": name}})
    assert len(log.lines) == 2
    assert all(character.isprintable() for character in log.getvalue() if character != "\n")
    if form == "json":
        assert log.objects[0]["message"] == f"tenant {name}"
        assert {each["level"] for each in log.objects} == {"warning"}


def test_a_value_of_text_cannot_be_taken_for_two() -> None:
    """Spaces and signs of equality are inside quotation marks."""
    with logging_to() as log:
        LOG.warning("x", extra={"fields": {"tenant": "a outcome=completed", "model": "m/7b"}})
    assert log.lines[0].endswith('x tenant="a outcome=completed" model=m/7b')


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_exception_is_types_and_places_however_it_is_logged(form: str) -> None:
    """`exception`, `exc_info` and what caused it: the words of none."""
    with logging_to(form=form) as log:
        error = caused()
        LOG.error("unforeseen", exc_info=error)
        try:
            fails(PROMPT)
        except ValueError:
            LOG.exception("again")
    first, second = log.lines
    assert "unforeseen: RuntimeError at test_logs.py:" in first
    assert ", after ValueError at test_logs.py:" in first
    assert "again: ValueError at test_logs.py:" in second
    assert PROMPT not in log.getvalue()
    assert "secret" not in log.getvalue()


@pytest.mark.parametrize(
    ("message", "values", "shown"),
    [
        ("Started server process [%d]", (7,), "Started server process [7]"),
        ("running on %s://%s:%d", ("http", PROMPT, 80), "running on …://…:80"),
        ("half %d %% of %(name)s", ({"name": PROMPT},), None),
        ("took %.3f s", (0.25,), "took 0.25 s"),
        ("%(name)s is odd", ({"name": PROMPT},), "… is odd"),
        (f"Task exception was never retrieved\nfuture: <Task {PROMPT}>", (), "… at x.py:7 reads"),
        (f"cannot read {PROMPT}", (), "… at x.py:7 reads"),
        (ValueError(PROMPT), (), "ValueError"),
        (OSError(98, PROMPT), (), "OSError EADDRINUSE"),
    ],
)
def test_of_other_libraries_only_templates_and_numbers_are_shown(
    message: object, values: tuple[object, ...], shown: str | None
) -> None:
    """A driver's error may quote a row, a server's the head of a request."""
    record = logging.LogRecord(
        "asyncpg.x", logging.ERROR, "a/x.py", 7, message, values, None, "reads"
    )
    line = json.loads(JsonLines().format(record))["message"]
    assert PROMPT not in line
    assert PROMPT not in TextLines().format(record)
    if shown is not None:
        assert line == shown


def test_a_long_message_is_cut() -> None:
    """A line is never megabytes."""
    with logging_to(form="json") as log:
        LOG.error("x" * 1_000_000)
    assert len(log.objects[0]["message"]) == MESSAGE_CHARACTERS_MAX + 1


async def test_what_nobody_caught_in_the_loop_is_logged_without_its_words() -> None:
    """A task's exception, a callback with its arguments, and a complaint without exception."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_failure)
    asked = asyncio.Event()

    async def breaks(prompt: str) -> None:
        fails(prompt)

    with logging_to(form="json") as log:
        loop.call_soon(fails, PROMPT)
        loop.call_soon(asked.set)
        await asked.wait()
        task = asyncio.create_task(breaks(PROMPT))
        await asyncio.wait([task])
        del task
        loop.call_exception_handler({"message": PROMPT})
    messages = [line["message"] for line in log.objects]
    assert messages[0].startswith("nobody caught what a callback raised: ValueError at")
    assert "breaks raised: ValueError at test_logs.py" in messages[1]
    assert messages[2] == "the event loop complains of a callback"
    assert PROMPT not in log.getvalue()


async def test_a_loop_that_ends_by_a_bug_is_logged_with_its_place() -> None:
    """What ends as it was told to is not."""

    async def breaks() -> None:
        fails(PROMPT)

    with logging_to() as log:
        task, other = asyncio.create_task(breaks()), asyncio.create_task(asyncio.sleep(60))
        task.add_done_callback(log_end_of_loop)
        other.add_done_callback(log_end_of_loop)
        other.cancel()
        await asyncio.wait([task, other])
    (line,) = log.lines
    assert "a background loop ended: ValueError at test_logs.py" in line
    assert PROMPT not in line


def test_what_ends_the_process_or_a_thread_is_one_line() -> None:
    """Python itself would print the exception with its words."""
    with (
        mock.patch.object(sys, "excepthook"),
        mock.patch.object(threading, "excepthook"),
        mock.patch.object(sys, "unraisablehook"),
        logging_to() as log,
    ):
        log_uncaught()
        error = caused()
        sys.excepthook(RuntimeError, error, None)
        sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
        thread = threading.Thread(target=fails, args=(PROMPT,))
        thread.start()
        thread.join()
    ends, of_thread = log.lines
    assert "the process ends: RuntimeError at" in ends
    assert "a thread ends: ValueError at test_logs.py" in of_thread
    assert PROMPT not in log.getvalue()


def test_a_line_that_cannot_be_made_is_counted_and_quotes_nobody() -> None:
    """Python's own handler prints the arguments."""
    before = LOST._value.get()
    with logging_to() as log:
        LOG.info("of %d", PROMPT)
    assert log.getvalue() == ""
    assert LOST._value.get() == before + 1


def test_a_librarys_warning_is_one_line_without_its_words() -> None:
    """Instead of the code that warns on standard error."""
    with logging_to() as log, warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(f"cannot read {PROMPT!r}", UserWarning, stacklevel=1)
    (line,) = log.lines
    assert "py.warnings" in line
    assert PROMPT not in line


def test_what_nobody_could_catch_is_one_line() -> None:
    """As what an object raises while it is thrown away."""

    class Breaks:
        def __del__(self) -> None:
            raise ValueError(PROMPT)

    hooks = (sys.excepthook, threading.excepthook, sys.unraisablehook)
    try:
        with logging_to() as log:
            log_uncaught()
            one = Breaks()
            del one
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    (line,) = log.lines
    assert "what nobody could catch was raised: ValueError at test_logs.py" in line
    assert PROMPT not in log.getvalue()
