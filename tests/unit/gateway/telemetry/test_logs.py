import logging

import pytest

from gateway.telemetry.logs import configure_logging, log_failure

PROMPT = "a tenant's secret prompt"


def fails(prompt: str) -> None:
    raise ValueError(f"cannot read {prompt!r}")


def test_a_failure_is_logged_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    """What a tenant wrote may be in an exception's message: its type and stack are enough."""
    try:
        try:
            fails(PROMPT)
        except ValueError as error:
            raise RuntimeError(PROMPT) from error
    except RuntimeError as error:
        log_failure(logging.getLogger("test"), error, "request %s failed", "rid")
    (line,) = caplog.messages
    assert line.startswith("request rid failed: RuntimeError at test_logs.py:")
    assert "test_a_failure_is_logged" in line
    assert PROMPT not in caplog.text


def test_a_failure_that_was_never_raised_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    """No traceback, no crash."""
    log_failure(logging.getLogger("test"), ValueError(PROMPT), "late")
    assert caplog.messages == ["late: ValueError at "]


def test_lines_are_utc_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line an event, with its level and where it comes from."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    try:
        configure_logging("WARNING")
        record = logging.LogRecord("w", logging.WARNING, "", 1, "hello %s", ("you",), None)
        record.created = record.msecs = 0.0
        root.handle(record)
        logging.getLogger("w").info("not this")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    assert capsys.readouterr().err == "1970-01-01 00:00:00,000Z WARNING w hello you\n"
