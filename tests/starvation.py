"""How long a gateway got no core: what it answers at once, asked without pause beside a test.

A machine that runs other things too takes the cores away for a while, and every bound on a time is
then passed through nobody's fault. While the gateway stands still, the question that is out stands
still with it, and so do they who ask (a thread of the test's process): what its answer took beyond
the usual is what an answer of another kind in the same moments is excused. Only as long as most
need no excuse: a gateway that holds itself up would excuse itself too.
"""

import http.client
import threading
import time
import urllib.parse
from contextlib import suppress
from types import TracebackType

USUAL_S = 0.02
PAUSE_S = 0.005


class Control:
    """Asks a gateway for `/healthz`, which looks at no store, for as long as the block runs."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self._address = (parts.hostname or "", parts.port)
        self._asked: list[tuple[float, float]] = []
        self._out_since = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Control":
        self._out_since = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def lost_s(self, since: float, until: float | None = None) -> float:
        """What answers took beyond the usual, of all that were out in that time (monotonic), each
        counted whole."""
        until = time.monotonic() if until is None else until
        asked = [*self._asked, (self._out_since, time.monotonic())]
        took_s = [end - began for began, end in asked if began < until and end > since]
        return sum(max(0.0, each - USUAL_S) for each in took_s)

    def _ask(self) -> None:
        connection = http.client.HTTPConnection(*self._address, timeout=30)
        while not self._over.is_set():
            # From the end of the last answer on: what held up this thread alone is seen too.
            with suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/healthz")
                connection.getresponse().read()
            now = time.monotonic()
            self._asked.append((self._out_since, now))
            self._out_since = now
            time.sleep(PAUSE_S)
        connection.close()
