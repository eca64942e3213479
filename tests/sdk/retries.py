"""The SDKs' own retries, for both of them."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sdk.failures import assert_waits
from sdk.python_sdk import call_sync
from sdk.seen import Call, Caller, Seen
from sdk.systems import call, new_model, worker_of
from weir_dev import WeirDev

from gateway.errors import QuotaExceeded
from gateway.serving.answer import answer_error

SEEN_WITHIN_S = 20.0


def assert_waits_for_a_place(system: WeirDev, caller: Caller) -> None:
    """A tenant at its limit of sequences: the SDK waits what the refusal said, then succeeds."""
    system.set_limits(max_sequences=1)
    with system.open_chat(max_tokens=2000, stream=True) as stream:
        assert stream.recv(1024)
        told = assert_waits(call_sync(call(system)))
        seen = _while_refused(
            system, 'weir_refusals_total{kind="sequences"}', caller, call(system, max_retries=2)
        )
        stream.close()
        _assert_retried(seen.result(), told)


def assert_waits_for_a_worker(system: WeirDev, caller: Caller) -> None:
    """A model without a worker: the SDK waits as told until there is one."""
    system.set_limits()
    model = new_model(system)
    deadline = time.monotonic() + SEEN_WITHIN_S
    while (refused := call_sync(call(system, model=model))).error["code"] != "no_worker":  # type: ignore[index]
        assert time.monotonic() < deadline
    told = assert_waits(refused)
    seen = _while_refused(
        system,
        'weir_errors_total{code="no_worker",surface="v1"}',
        caller,
        call(system, model=model, max_retries=30),
    )
    with worker_of(system, model):
        _assert_retried(seen.result(), told)


def _assert_retried(seen: Seen, told_s: float) -> None:
    """It has its answer, and not before the wait that it was told."""
    assert seen.error is None, seen.error
    assert seen.text()
    assert seen.elapsed_s >= told_s


def _while_refused(system: WeirDev, metric: str, caller: Caller, asked: Call) -> Future[Seen]:
    """Make the call beside the test. Returns once the gateway has refused it."""
    before = _metric(system, metric)
    pool = ThreadPoolExecutor(1)
    seen = pool.submit(caller, asked)
    pool.shutdown(wait=False)
    deadline = time.monotonic() + SEEN_WITHIN_S
    while _metric(system, metric) == before:
        assert not seen.done(), seen.result()
        assert time.monotonic() < deadline, "it was never refused"
    return seen


def _metric(system: WeirDev, name: str) -> float:
    lines = system.request("GET", system.gateway() + "/metrics").raw.decode().splitlines()
    found = [float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)]
    return sum(found)


class _Recorded:
    """A client's connection that keeps what is written to it."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status, self.headers = status, headers

    async def finish(self, body: bytes) -> None:
        self.body = body


@contextmanager
def refusing_for_good() -> Iterator[tuple[str, Callable[[], int]]]:
    """A server whose every answer is the gateway's own `insufficient_quota`. Gives its base URL and
    the count of requests."""
    recorded = _Recorded()
    error = QuotaExceeded("the monthly budget is spent", retry_after_ms=1000)
    asyncio.run(answer_error(recorded, error, [(b"x-request-id", b"0" * 36)]))  # type: ignore[arg-type]
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(recorded.status)
            for name, value in recorded.headers:
                self.send_header(name.decode(), value.decode())
            self.end_headers()
            self.wfile.write(recorded.body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1", lambda: len(asked)
        finally:
            server.shutdown()
            thread.join()


def assert_not_retried(caller: Caller) -> None:
    """S19: `x-should-retry: false` is obeyed, `retry-after` or not."""
    with refusing_for_good() as (base_url, count):
        messages = [{"role": "user", "content": "x"}]
        seen = caller(Call("chat", {"model": "m", "messages": messages}, base_url, "k", 2))
    assert count() == 1
    assert seen.error is not None
    assert (seen.error["class"], seen.error["code"]) == ("RateLimitError", "insufficient_quota")
    assert seen.headers["x-should-retry"] == "false"
    assert_waits(seen)
