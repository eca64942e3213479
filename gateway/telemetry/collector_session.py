"""The way of telemetry to a collector: one POST, over within its time whatever the collector does,
and taken only where the collector says so.

The exporter's own session bounds each read and not all of them together, and holds a redirect for
a success. What is kept of an answer is its status and how much was rejected: never its words.
"""

import io
import threading
import time
from collections.abc import Callable
from typing import Any

import requests
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

ANSWER_BYTES_MAX = 64 * 1024
_PIECE_BYTES = 8 * 1024
_PROTOBUF = "application/x-protobuf"


class NotTaken(Exception):
    """The collector's answer is no yes; nothing is gained by sending it again. Says why."""


class CollectorSession(requests.Session):
    """Of one exporter, which calls it from one thread at a time."""

    def __init__(self, answer: Callable[[], Any], rejected: str, timeout_s: float) -> None:
        """`answer` is what a collector answers with, `rejected` the field of its `partial_success`
        that counts what it did not take. `timeout_s` holds where the exporter names no time."""
        super().__init__()
        self._answer = answer
        self._field = rejected
        self._timeout_s = timeout_s
        self._running: threading.Thread | None = None
        self.rejected = 0
        """Of the last POST: what the collector says that it threw away of it."""
        self.why_not = ""
        """Of the last POST that failed: a status, or the type of what was raised."""

    def request(self, method: Any, url: Any, **options: Any) -> requests.Response:  # type: ignore[override]
        """As `Session.request`, its answer read, in `timeout` seconds at most. Raises
        requests.Timeout, NotTaken, and what `Session.request` does."""
        self.rejected, self.why_not = 0, ""
        try:
            return self._within(method, url, options)
        except Exception as error:
            self.why_not = self.why_not or type(error).__name__
            raise

    def _within(self, method: Any, url: Any, options: dict[str, Any]) -> requests.Response:
        if self._running is not None and self._running.is_alive():
            raise requests.Timeout  # one that never ends its head is enough
        timeout_s = max(0.001, options.pop("timeout", None) or self._timeout_s)
        deadline_s = time.monotonic() + timeout_s
        options |= {"timeout": timeout_s, "allow_redirects": False, "stream": True}
        found: list[requests.Response | Exception] = []

        def ask() -> None:
            try:
                response = super(CollectorSession, self).request(method, url, **options)
                with response:
                    body = _read(response, deadline_s)
                response.raw = io.BytesIO(body)
                found.append(response)
            except Exception as error:  # noqa: BLE001 - raised again where it is waited for
                found.append(error)

        self._running = threading.Thread(target=ask, name="otlp-post", daemon=True)
        self._running.start()
        self._running.join(timeout_s)
        if not found:
            raise requests.Timeout
        answered = found[0]
        if isinstance(answered, Exception):
            raise answered
        self._judge(answered)
        return answered

    def _judge(self, response: requests.Response) -> None:
        status = response.status_code
        if not 200 <= status < 300:
            self.why_not = f"status {status}"
        if 300 <= status < 400:
            raise NotTaken  # where it leads is not where the operator said
        if response.headers.get("content-type", "").startswith(_PROTOBUF) and response.ok:
            self.rejected = self._rejected(response.content)

    def _rejected(self, body: bytes) -> int:
        answer = self._answer()
        try:
            answer.ParseFromString(body)
        except DecodeError:
            return 0
        count = int(getattr(answer.partial_success, self._field))
        if count > 0:
            self.why_not = f"{count} rejected"
        return max(0, count)


def _read(response: requests.Response, deadline_s: float) -> bytes:
    """Its body, up to a bound. Raises requests.Timeout where it does not end in time."""
    body = b""
    while len(body) < ANSWER_BYTES_MAX:
        piece: bytes = response.raw.read1(_PIECE_BYTES, decode_content=True)
        if not piece:
            break
        body += piece
        if time.monotonic() > deadline_s:
            raise requests.Timeout
    return body
