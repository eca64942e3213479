"""What passes between a tenant and a worker, over real HTTP on both sides, and what does not."""

import json
import socket
import time
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import engine_events as events
import openai
import pytest
from recording_worker import HOSTILE_HEADERS, RecordingWorker, recording_worker
from weir_dev import Reply, WeirDev, weir_dev

KEEPALIVE_MS = 400
CLIENT_HEADERS = {
    "cookie": "client-cookie",
    "x-forwarded-for": "client-forwarded",
    "forwarded": "for=client-forwarded",
    "x-real-ip": "client-address",
    "via": "1.1 client-via",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "tracestate": "client=state",
    "baggage": "client=baggage",
    "user-agent": "client-agent",
    "accept-language": "client-language",
    "accept-encoding": "gzip",
    "referer": "http://client-referer",
    "origin": "http://client-origin",
    "openai-organization": "client-organisation",
    "openai-project": "client-project",
    "idempotency-key": "client-key",
    "x-request-id": "client-request",
    "x-stainless-retry-count": "client-retry",
    "x-anything": "client-anything",
    "x-data-parallel-rank": "client-rank",
    "content-type": "application/json; client-type=1",
    "proxy-authorization": "client-proxy",
    "te": "trailers",
}
UPSTREAM_HEADERS = {"host", "content-type", "content-length", "accept", "accept-encoding",
                    "user-agent"}  # fmt: skip
"""All that a worker without a key is sent, and nothing of a client's in them."""
ANSWER_HEADERS = {"content-type", "content-length", "transfer-encoding", "connection", "date",
                  "cache-control", "x-request-id", "x-weir-queue-ms", "retry-after",
                  "retry-after-ms"}  # fmt: skip
"""All that a tenant without limits is sent."""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WeirDev, RecordingWorker]]:
    """A gateway in front of the worker."""
    folder = tmp_path_factory.mktemp("recording")
    with (
        recording_worker() as worker,
        weir_dev(
            folder,
            "--engine",
            worker.url,
            environment={"WEIR_KEEPALIVE_MS": str(KEEPALIVE_MS)},
        ) as system,
    ):
        yield system, worker


Started = tuple[WeirDev, RecordingWorker]


@pytest.fixture
def pair(started: Started) -> Started:
    """The same, the worker as it was made."""
    system, worker = started
    worker.reset()
    return system, worker


ANSWERS = [
    (200, events.answer(["a", "b"])),
    (200, [events.error(503)]),
    (400, [b'{"object":"error","message":"temperature is odd: engine-words","code":400}']),
    (503, [b'{"object":"error","message":"engine-words","code":503}']),
    (500, [b"engine-words"]),
    (302, [b"engine-words"]),
]
EACH = pytest.mark.parametrize(("status", "answer"), ANSWERS)


def test_what_an_engine_says_of_itself_is_shown(pair: Started) -> None:
    """To an operator, on the live view; what it does not say is null."""
    system, _ = pair
    (shown,) = system.admin("GET", "/admin/v1/live").json["workers"]
    assert (shown["healthy"], shown["version"], shown["cache_report"]) == (True, "0.5.23", True)
    assert (shown["priority_order"], shown["context_tokens"]) == (None, None)


def lines_of(reply: Reply) -> str:
    return "\n".join(f"{name}: {value}" for name, value in reply.headers.items())


@EACH
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_no_header_passes_in_either_direction(
    pair: Started, status: int, answer: list[bytes], stream: bool
) -> None:
    """INV-12: a worker sees the gateway's fixed headers and none of the client's; a client sees the
    contract's and none of the engine's, nor its words, whatever it answers."""
    system, worker = pair
    worker.status, worker.answer = status, answer
    reply = system.post(
        system.body(stream=stream, temperature=1), headers={**CLIENT_HEADERS, "x-api-key": "odd"}
    )
    assert worker.completions
    for seen in worker.seen:
        names = {name.lower() for name, _ in seen.headers}
        assert names <= UPSTREAM_HEADERS, seen.path
        values = " ".join(value for _, value in seen.headers)
        assert "client" not in values
        assert system.key() not in values
        assert "4bf92f35" not in values
    assert reply.headers.keys() <= ANSWER_HEADERS
    shown = lines_of(reply)
    assert "engine" not in shown
    assert not any(value in shown for value in HOSTILE_HEADERS.values())
    assert b"engine-words" not in reply.raw
    assert reply.headers["x-request-id"] not in ("engine-request", "client-request")
    assert (reply.status == 200) is (status == 200 and answer is ANSWERS[0][1])


def raw_answer(system: WeirDev, head: bytes, body: bytes) -> bytes:
    """The head of the answer to a request written byte by byte."""
    parts = urllib.parse.urlsplit(system.gateway())
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n"
            b"authorization: Bearer %b\r\ncontent-length: %d\r\n%b\r\n%b"
            % (system.key().encode(), len(body), head, body)
        )
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received.partition(b"\r\n\r\n")[0]


@pytest.mark.parametrize(
    "value", [b"batch\rset-cookie: a=b", b"batch\nset-cookie: a=b", b"batch\r\n set-cookie: a=b"]
)
def test_no_line_end_comes_back_in_a_header(pair: Started, value: bytes) -> None:
    """Whatever a header or a field holds, it opens no header of the answer or of the upstream."""
    system, worker = pair
    body = json.dumps(system.body(user="x\r\nset-cookie: a=b")).encode()
    for name in (b"x-weir-class", b"x-request-id", b"x-weir-max-wait-ms"):
        head = raw_answer(system, name + b": " + value + b"\r\n", body)
        assert head.startswith(b"HTTP/1.1 ")
        assert b"set-cookie" not in head.lower()
    odd = json.dumps(system.body(model="m\r\nset-cookie: a=b")).encode()
    head = raw_answer(system, b"", odd)
    assert head.startswith(b"HTTP/1.1 404")
    assert b"set-cookie" not in head.lower()
    assert not any(name.lower() == "set-cookie" for s in worker.seen for name, _ in s.headers)


@pytest.mark.parametrize("status", [429, 503, 200])
def test_s27_a_full_engine_is_a_status_with_a_time(pair: Started, status: int) -> None:
    """S27: before any byte, also inside a 200 stream: ours is 503 `no_capacity`, with our own
    `retry-after`, never a 200 with an error in it."""
    system, worker = pair
    worker.status, worker.answer = status, [events.error(503)]
    reply = system.chat(stream=True)
    assert (reply.status, reply.error["code"]) == (503, "no_capacity")
    assert 1 <= int(reply.headers["retry-after"]) <= 60
    assert 1 <= int(reply.headers["retry-after-ms"]) <= 60_000


def sdk(system: WeirDev) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=system.gateway() + "/v1", api_key=system.key(), max_retries=0, timeout=20
    )


def test_s18_a_long_prefill_is_kept_alive_by_comments(pair: Started) -> None:
    """S18: comments come while the engine is silent (WEIR_KEEPALIVE_MS), none after it began, and
    the SDK sees only chunks."""
    system, worker = pair
    worker.gate.clear()

    def streamed() -> str:
        with sdk(system) as client:
            chunks = client.chat.completions.create(
                model=system.model, messages=[{"role": "user", "content": "x"}], stream=True
            )
            return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    with ThreadPoolExecutor(1) as pool:
        text = pool.submit(streamed)
        deadline = time.monotonic() + 10
        while not worker.completions:
            assert time.monotonic() < deadline
        with system.open_chat(stream=True) as beside:
            received = b""
            while received.count(b": keep-alive\n\n") < 2:
                received += beside.recv(65536)
            assert b"data: " not in received
            # The SDK's request is older: it has had as many.
            worker.gate.set()
            while b"[DONE]" not in received:
                received += beside.recv(65536)
        assert text.result(10) == "ab"
    assert b"keep-alive" not in received.partition(b"data: ")[2]


def test_s16_what_is_no_chunk_never_reaches_an_sdk(pair: Started) -> None:
    """S16: comments, other fields, warnings and an empty chunk of the engine's are left out; the
    SDK parses the whole stream."""
    system, worker = pair
    worker.comment = b": engine-words\n\nevent: warning\nid: 7\nretry: 1\n\n"
    warning = b'{"warning":"engine-words"}'
    worker.answer = [warning, *events.answer(["a"])[:-1], warning, events.usage(5, 1)]
    reply = system.chat(stream=True)
    assert b"engine-words" not in reply.raw
    assert {line[:6] for line in reply.raw.splitlines() if line} == {b"data: "}
    with sdk(system) as client:
        chunks = list(
            client.chat.completions.create(
                model=system.model,
                messages=[{"role": "user", "content": "x"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
    assert all(chunk.object == "chat.completion.chunk" for chunk in chunks)
    assert chunks[-1].usage is not None
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 6)
