"""One request on its way: a connection in good time, the bytes when they are due, the answer."""

import asyncio
import errno
import time
from typing import Protocol

from backend.loadtest.answer_error import (
    ERROR_BYTES_MAX,
    end_of_event,
    end_of_status,
    read_error,
)
from backend.loadtest.http_connection import Connection, Connections
from backend.loadtest.run import End, Outcome
from backend.loadtest.run_clock import RunClock
from backend.loadtest.sse_reader import SseReader

_EVENT_STREAM = b"text/event-stream"
ID_CHARACTERS_MAX = 128


class Air(Protocol):
    """What all requests of a run share."""

    clock: RunClock
    connections: Connections

    def landed(self, flight: "Flight") -> None:
        """It has its end. Called once for each."""


class Flight:
    """One request, and the receiver of its answer. `outcome` is whole once it has landed."""

    __slots__ = (
        "_air",
        "_answer",
        "_connecting",
        "_connection",
        "_due_ms",
        "_reader",
        "_request",
        "outcome",
    )

    def __init__(self, outcome: Outcome, air: Air) -> None:
        self.outcome = outcome
        self._air = air
        self._request: bytes | None = None
        self._due_ms = 0.0
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._reader: SseReader | None = None
        self._answer = b""

    @property
    def landed(self) -> bool:
        """Whether it has ended."""
        return self.outcome.ended_at_ms is not None

    def get_ready(self) -> None:
        """Have a connection before the bytes are due: opening one is no part of sending."""
        self._connection = self._air.connections.idle()
        if self._connection is None:
            self._connecting = asyncio.create_task(self._connect())

    def send(self, request: bytes) -> None:
        """The bytes are due: hand them to the socket, at once where there is a connection."""
        self._request = request
        self._due_ms = self._air.clock.now_ms()
        if self._connection is not None and not self._connection.closed:
            self._write(self._connection, request)
        elif self._connecting is None or self._connecting.done():
            # The one that was ready has been closed meanwhile, or could not be opened then.
            self._connecting = asyncio.create_task(self._connect())

    def give_up(self, end: End) -> None:
        """It has this end now, whatever the target does. Closing the connection tells it so."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.abandon()
        self._land(end, time.monotonic())

    async def _connect(self) -> None:
        try:
            connection = await self._air.connections.open()
        except (OSError, UnicodeError) as error:
            if self._request is not None:
                self.outcome.code = errno.errorcode.get(getattr(error, "errno", None) or 0)
                self._fail_unsent()
            return
        if self.landed:
            connection.abandon()
            return
        self._connection = connection
        if self._request is not None:
            self._write(connection, self._request)
            self.outcome.connect_wait_ms = self.outcome.sent_at_ms - self._due_ms

    def _fail_unsent(self) -> None:
        now_s = time.monotonic()
        self.outcome.sent_at_ms = self._air.clock.ms(now_s)
        self._land("unreachable", now_s)

    def _write(self, connection: Connection, request: bytes) -> None:
        self._request = None
        self.outcome.sent_at_ms = self._air.clock.now_ms()
        connection.send(request, self)

    # What the connection tells

    def head(self, status: int, headers: dict[bytes, bytes]) -> None:
        """See Receiver."""
        self.outcome.status = status
        self.outcome.request_id = _text(headers.get(b"x-request-id"))
        self.outcome.worker = _text(headers.get(b"x-weir-worker"))
        if status == 200 and headers.get(b"content-type", b"").startswith(_EVENT_STREAM):
            self._reader = SseReader()

    def body(self, data: bytes, at_s: float) -> None:
        """See Receiver."""
        if self._reader is not None:
            self._reader.feed(data, self._air.clock.ms(at_s))
        elif len(self._answer) < ERROR_BYTES_MAX:
            self._answer += data

    def ended(self, *, whole: bool, at_s: float) -> None:
        """See Receiver."""
        if self.landed:
            return
        outcome = self.outcome
        if outcome.status is None:
            self._land("unreachable", at_s)
        elif outcome.status != 200:
            outcome.code = read_error(self._answer).code
            self._land(end_of_status(outcome.status), at_s)
        elif self._reader is None:
            # Asked for a stream: whatever else this is, its times are not those of tokens.
            outcome.code = read_error(self._answer).code or "not_a_stream"
            self._land("failed" if whole else "cut", at_s)
        else:
            self._land(self._end_of_stream(self._reader, whole=whole), at_s)

    def _end_of_stream(self, reader: SseReader, *, whole: bool) -> End:
        if reader.error is not None:
            self.outcome.code = reader.error.code
            return end_of_event(reader.error)
        if reader.finish_reason == "abort":
            return "aborted"
        return "ok" if whole and reader.finish_reason is not None else "cut"

    def _land(self, end: End, at_s: float) -> None:
        if self.landed:
            return
        outcome, reader = self.outcome, self._reader
        outcome.end = end
        outcome.ended_at_ms = self._air.clock.ms(at_s)
        if reader is not None:
            outcome.first_token_at_ms = reader.first_token_at_ms
            outcome.last_token_at_ms = reader.last_token_at_ms
            outcome.gaps_ms = reader.gaps_ms
            if reader.usage is not None:
                outcome.prompt_tokens = reader.usage.prompt_tokens
                outcome.cached_tokens = reader.usage.cached_tokens
                outcome.output_tokens = reader.usage.completion_tokens
        self._reader = None
        self._answer = b""
        self._connection = self._connecting = None
        self._air.landed(self)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value[:ID_CHARACTERS_MAX].decode("latin-1")
