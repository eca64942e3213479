"""How long a server got no core: what it answers at once, asked without pause beside a test.

A machine that runs other things too takes the cores away for a while, and every bound on a time is
then passed through nobody's fault. While the server stands still, the question that is out stands
still with it, and so do they who ask (a thread of the test's process): what its answer took beyond
the usual is what an answer of another kind in the same moments is excused. Only as long as most
need no excuse: a server that holds itself up would excuse itself too.
"""

import http.client
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from types import TracebackType

import redis

USUAL_S = 0.02
PAUSE_S = 0.005


class Control:
    """Asks on and on, for as long as the block runs, something that is answered at once."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self._once = ask
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
        while not self._over.is_set():
            # From the end of the last answer on: what held up this thread alone is seen too.
            with suppress(OSError, http.client.HTTPException, redis.RedisError):
                self._once()
            now = time.monotonic()
            self._asked.append((self._out_since, now))
            self._out_since = now
            time.sleep(PAUSE_S)


@contextmanager
def control_of_gateway(url: str) -> Iterator[Control]:
    """Asks a gateway for `/healthz`, which looks at no store."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)

    def ask() -> None:
        connection.request("GET", "/healthz")
        connection.getresponse().read()

    with closing(connection), Control(ask) as control:
        yield control


@contextmanager
def control_of_store(url: str) -> Iterator[Control]:
    """Asks a Redis itself, not by way of what a test breaks."""
    with redis.Redis.from_url(url) as client, Control(client.ping) as control:
        yield control
