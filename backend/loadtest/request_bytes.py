"""The bytes of each request, made ahead of their time so that making them delays nothing."""

from collections import deque
from collections.abc import Callable, Sequence

from backend.loadtest.http_connection import Address
from backend.loadtest.plan import PlannedRequest

MADE_AHEAD_BYTES_MAX = 256 * 1024 * 1024


class RequestBytes:
    """Requests in the order in which they are taken. As many as fit are made before the run, the
    others one by one as those go out."""

    def __init__(
        self,
        requests: Sequence[PlannedRequest],
        address: Address,
        *,
        body_of: Callable[[PlannedRequest], bytes],
        api_key_of: Callable[[PlannedRequest], str | None],
        ahead_bytes_max: int = MADE_AHEAD_BYTES_MAX,
    ) -> None:
        self._requests = requests
        self._address = address
        self._body_of = body_of
        self._api_key_of = api_key_of
        self._ahead_bytes_max = ahead_bytes_max
        self._made: deque[bytes] = deque()
        self._made_bytes = 0
        self._next = 0
        while self.make_one():
            pass

    def make_one(self) -> bool:
        """Make the next one, if there is one and there is room. Returns whether it did.

        Raises:
            ValueError: an API key that no header can carry.
        """
        if self._next == len(self._requests) or self._made_bytes >= self._ahead_bytes_max:
            return False
        made = self._bytes_of(self._requests[self._next])
        self._made.append(made)
        self._made_bytes += len(made)
        self._next += 1
        return True

    def take(self) -> bytes:
        """The next one. Raises IndexError behind the last."""
        if not self._made:
            self.make_one()
        taken = self._made.popleft()
        self._made_bytes -= len(taken)
        return taken

    def _bytes_of(self, request: PlannedRequest) -> bytes:
        body = self._body_of(request)
        key = self._api_key_of(request)
        lines = [
            f"POST {self._address.path}/v1/chat/completions HTTP/1.1",
            f"host: {self._address.authority}",
            "content-type: application/json",
            "accept: text/event-stream",
            f"content-length: {len(body)}",
        ]
        if key is not None:
            if not (key.isascii() and key.isprintable()):
                raise ValueError("an API key has characters that no header can carry")
            lines.append(f"authorization: Bearer {key}")
        return "\r\n".join([*lines, "", ""]).encode() + body
