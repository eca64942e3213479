"""A client that closes its connection (`captures/03_disconnect.txt`, `04`, `05a`)."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from socket import create_connection
from urllib.parse import urlsplit
from uuid import uuid4

from conformance.aborts import LONG, begun, reason
from conformance.engine import CHAT, GENERATE, Engine, Json, chat_body, generate_body, soon

GONE_WITHIN_S = 1.0
"""Measured: 14 ms, and a step of the engine."""
WHOLE_GONE_WITHIN_S = 12.0
"""SGLang looks 4 s after the request began: three times that."""


@contextmanager
def waiting_client(engine: Engine, path: str, body: Json) -> Iterator[None]:
    """A client that has asked and waits for the first byte; it leaves at the block's end."""
    parts = urlsplit(engine.url)
    raw = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n"
    with create_connection((parts.hostname or "", parts.port or 0), 10) as connection:
        connection.sendall(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
        yield


def check_a_stream(engine: Engine) -> None:
    """Chat and /generate: gone at once, and its KV with it."""
    for path, body in (
        (CHAT, chat_body(max_tokens=LONG)),
        (GENERATE, generate_body(tokens=LONG)),
    ):
        with engine.streaming(path, body) as stream:
            stream.event()
            stream.event()
            assert not engine.idle
        took_s = soon(lambda: engine.idle, "an idle engine", within_s=3 * GONE_WITHIN_S)
        assert took_s < 3 * GONE_WITHIN_S
        soon(lambda: engine.load()["num_used_tokens"] == 0, "a free pool", within_s=5)


def check_a_whole_request(engine: Engine) -> None:
    """Without a stream nobody looks until 4 s after it began: it decodes on meanwhile."""
    asked_at = time.monotonic()
    with waiting_client(engine, CHAT, chat_body(max_tokens=LONG)):
        engine.until_load(num_running_reqs=1)
    while time.monotonic() < asked_at + 3:
        assert not engine.idle, f"gone {time.monotonic() - asked_at:.2f} s after it began"
        time.sleep(0.05)
    soon(lambda: engine.idle, "an idle engine", within_s=WHOLE_GONE_WITHIN_S)


def check_takes_its_prefix_along(engine: Engine) -> None:
    """Who leaves aborts by rid, and so by prefix: other clients' requests too."""
    mark = uuid4().hex
    with ExitStack() as stack:
        ten = begun(engine, stack, f"{mark}-d10")
        other = begun(engine, stack, f"{mark}-x2", max_tokens=18)
        with ExitStack() as leaving:
            begun(engine, leaving, f"{mark}-d1")
        assert reason(ten) == "abort"
        assert reason(other) == "length"
