"""Server-sent events, read from bytes that may be split anywhere, and written.

Source: WHATWG HTML, section 9.2 "Server-sent events". Of an event only its data is kept: OpenAI's
streams use nothing else.
"""

from collections.abc import Iterator

DONE = b"[DONE]"
DONE_EVENT = b"data: [DONE]\n\n"
KEEPALIVE = b": keep-alive\n\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """An event is longer than the reader's bound."""


class SseReader:
    """Feed it bytes, get the data of each complete event.

    Lines end with LF, CR LF or CR; comments and other fields are skipped; the data of several
    `data` lines is joined with LF; a byte order mark before all of it is skipped. Raises
    EventTooLong where one event passes `event_bytes_max`.
    """

    def __init__(self, event_bytes_max: int = 16 * 1024 * 1024) -> None:
        self._rest = b""
        self._after_cr = False
        self._at_start = True
        self._data: list[bytes] = []
        self._size = 0
        self._event_bytes_max = event_bytes_max

    def feed(self, received: bytes) -> Iterator[bytes]:
        """Yield the data of every event that `received` completes."""
        received = self._with_plain_ends(received)
        if b"\n" not in received:
            self._rest += received
            self._bound(len(self._rest))
            return
        *lines, self._rest = (self._rest + received).split(b"\n")
        if self._at_start:
            self._at_start = False
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                yield self._flush()
        self._bound(len(self._rest))

    def _with_plain_ends(self, received: bytes) -> bytes:
        # A CR ends its line at once; a LF that comes next, even in the next piece, is part of it.
        if self._after_cr and received.startswith(b"\n"):
            received = received[1:]
            self._after_cr = False
        if received:
            self._after_cr = received.endswith(b"\r")
        if b"\r" in received:
            received = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return received

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            value = line[6:] if line[5:6] == b" " else line[5:]
            self._bound(len(value) + 1)
            self._data.append(value)
            self._size += len(value) + 1

    def _bound(self, more: int) -> None:
        if self._size + more > self._event_bytes_max:
            raise EventTooLong(f"an event is over {self._event_bytes_max} bytes")

    def _flush(self) -> bytes:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data = []
        self._size = 0
        return data


def event(data: bytes) -> bytes:
    """One event whose data is a line of JSON."""
    return b"data: " + data + b"\n\n"
