"""The open loop on real sockets: every end, and times that hide nothing."""

import asyncio
import functools
import json
import socket
import time
from collections.abc import Sequence

import engine_events as events
import pytest
from scripted_http import END, STREAM_HEAD, Act, ScriptedHttp, Step, event, scripted_http, whole

from backend.loadtest import http_target
from backend.loadtest.generator_guard import send_lags_ms, verdict
from backend.loadtest.http_connection import Connection, Connections, address_of
from backend.loadtest.http_target import HttpTarget
from backend.loadtest.plan import PlannedRequest, Segment, Workload
from backend.loadtest.progress import Counts
from backend.loadtest.request_bytes import RequestBytes
from backend.loadtest.run import End, Outcome, Run, TargetFacts

USAGE = json.dumps({"choices": [], "usage": events.counts(5, 2, cached=3)}).encode()
TAIL = [event(events.finish("length")), event(USAGE), event(b"[DONE]"), END]
ANSWER: list[Step] = [
    STREAM_HEAD, event(events.role()), event(events.content("a")), event(events.content("b")), *TAIL
]  # fmt: skip


def workload(*send_at_ms: float) -> Workload:
    requests = tuple(
        PlannedRequest(number, at_ms, "acme", "interactive", (Segment("p", 5),), 2)
        for number, at_ms in enumerate(send_at_ms)
    )
    return Workload("made-up", "", 0, "by hand", requests, max(send_at_ms, default=0.0), 0.0)


def target(url: str, *, speed: float = 1.0, timeout_s: float = 20.0) -> HttpTarget:
    return HttpTarget(
        url,
        TargetFacts("scripted", None, clock_speed=speed),
        body_of=lambda request: b'{"number": %d}' % request.number,
        api_key_of=lambda request: f"sk-{request.tenant}",
        request_timeout_s=timeout_s,
    )


async def one(script: Sequence[Step], timeout_s: float = 20.0) -> Run:
    with scripted_http(script) as server:
        return await target(server.url, timeout_s=timeout_s).run(workload(0.0))


async def test_a_whole_answer() -> None:
    """Everything that is measured of it."""
    with scripted_http(ANSWER) as server:
        run = await target(server.url + "/v1").run(workload(0.0))
        [arrived] = server.arrived
    [outcome] = run.outcomes
    assert (outcome.end, outcome.status, outcome.code) == ("ok", 200, None)
    assert (outcome.prompt_tokens, outcome.cached_tokens, outcome.output_tokens) == (5, 3, 2)
    assert (outcome.request_id, outcome.worker) == ("id-of-it", "w-1")
    assert outcome.first_token_at_ms is not None
    assert outcome.last_token_at_ms is not None
    assert outcome.ended_at_ms is not None
    assert 0 <= outcome.sent_at_ms <= outcome.first_token_at_ms <= outcome.last_token_at_ms
    assert outcome.last_token_at_ms <= outcome.ended_at_ms
    assert len(outcome.gaps_ms) == 1
    assert arrived.head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert b"\r\nauthorization: Bearer sk-acme\r\n" in arrived.head
    assert arrived.body == b'{"number": 0}'
    assert run.stopped_at_ms is None


FULL = b'{"error": {"message": "m", "type": "SERVICE_UNAVAILABLE", "code": 503}}'
FAILED = b'{"error": {"message": "m", "type": "upstream_error", "code": "worker_failed"}}'
LIMITED = b'{"error": {"type": "sequences", "code": "rate_limit_exceeded"}}'
TOKEN = [STREAM_HEAD, event(events.content("a"))]
ENDS: list[tuple[str, list[Step], End, int | None, str | None]] = [
    ("limited", [whole(429, LIMITED)], "rate_limited", 429, "rate_limit_exceeded"),
    ("busy", [whole(503, FULL)], "unavailable", 503, "503"),
    ("bad", [whole(400, b"{}")], "refused", 400, None),
    ("gateway", [whole(502, FAILED)], "failed", 502, "worker_failed"),
    ("full", [STREAM_HEAD, event(FULL), event(b"[DONE]"), END], "unavailable", 200, "503"),
    ("event", [*TOKEN, event(FAILED), END], "failed", 200, "worker_failed"),
    ("after", [*ANSWER[:-1], event(FAILED), END], "failed", 200, "worker_failed"),
    ("abort", [*TOKEN, event(events.finish("abort")), event(USAGE), END], "aborted", 200, None),
    ("unfinished", [*TOKEN, event(b"[DONE]"), END], "cut", 200, None),
    ("closed", [*TOKEN, Act.CLOSE], "cut", 200, None),
    ("broken", [*ANSWER[:-1], Act.CLOSE], "cut", 200, None),
    ("reset", [*TOKEN, 0.05, Act.RESET], "cut", 200, None),
    ("not HTTP", [*TOKEN, b"no chunk\r\n"], "cut", 200, None),
    ("silent", [Act.CLOSE], "unreachable", None, None),
    ("nonsense", [b"SSH-2.0-x\r\n\r\n"], "unreachable", None, None),
    ("no stream", [whole(200, b'{"choices": []}')], "failed", 200, "not_a_stream"),
    ("interim", [b"HTTP/1.1 100 Continue\r\n\r\n", *ANSWER], "ok", 200, None),
]


@pytest.mark.parametrize(("script", "end", "status", "code"), [row[1:] for row in ENDS],
                         ids=[row[0] for row in ENDS])  # fmt: skip
async def test_every_end(
    script: list[Step], end: End, status: int | None, code: str | None
) -> None:
    """Each has its kind, and none raises."""
    [outcome] = (await one(script)).outcomes
    assert (outcome.end, outcome.status, outcome.code) == (end, status, code)
    assert outcome.ended_at_ms is not None


@pytest.mark.parametrize("script", [[Act.HANG], [*TOKEN, Act.HANG]])
async def test_a_request_has_its_time(script: list[Step]) -> None:
    """From the intended send on; then it is closed, and what it said by then is kept."""
    [outcome] = (await one(script, timeout_s=0.15)).outcomes
    assert outcome.end == "timeout"
    assert outcome.ended_at_ms is not None
    assert 150 <= outcome.ended_at_ms <= 450
    assert (outcome.first_token_at_ms is not None) == (len(script) > 1)


async def test_nobody_there() -> None:
    """Each request is `unreachable`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    run = await target(f"http://127.0.0.1:{port}").run(workload(0.0, 5.0, 100.0))
    assert [outcome.end for outcome in run.outcomes] == ["unreachable"] * 3
    assert {outcome.code for outcome in run.outcomes} == {"ECONNREFUSED"}


async def test_times_are_exact() -> None:
    """What is measured is what the server took from the arrival to the first token, and between
    the first and the second."""
    script: list[Step] = [
        STREAM_HEAD, event(events.role()), 0.05, event(events.content("a")), 0.03,
        event(events.content("b")), *TAIL,
    ]  # fmt: skip
    with scripted_http(script) as server:
        run = await target(server.url).run(workload(*[n * 20.0 for n in range(20)]))
    ttft_errors_ms = _ttft_errors_ms(run, server)
    assert ttft_errors_ms[0] >= 0
    assert quarter(ttft_errors_ms) <= 5
    gap_errors_ms = sorted(
        abs(outcome.gaps_ms[0] - (of.written_s[3] - of.written_s[2]) * 1000)
        for outcome, of in zip(run.outcomes, server.arrived, strict=True)
    )
    assert quarter(gap_errors_ms) <= 5
    lags = send_lags_ms(run)
    assert lags[0] >= 0, "sent before its time"
    assert quarter(lags) <= 3


def quarter(ordered: Sequence[float]) -> float:
    """What a quarter does not exceed: a busy machine delays the others."""
    return ordered[len(ordered) // 4]


def _ttft_errors_ms(run: Run, server: ScriptedHttp, *, content: int = 2) -> list[float]:
    """From the send to the first token, as measured, less what the server itself took to write it
    as so manyth of its script, in real milliseconds, sorted."""
    return sorted(
        ((outcome.first_token_at_ms or 0.0) - outcome.sent_at_ms) / run.target.clock_speed
        - (of.written_s[content] - of.at_s) * 1000
        for outcome, of in zip(run.outcomes, server.arrived, strict=True)
    )


async def test_a_stalled_generator_is_in_the_latency() -> None:
    """What was due while it stalled counts from when it was due, and the run is refused."""
    due_ms = [n * 5.0 for n in range(60)]

    def stall_once(counts: Counts) -> None:
        if counts.sent < len(due_ms):
            time.sleep(0.1)

    with scripted_http(ANSWER) as server:
        run = await target(server.url).run(workload(*due_ms), stall_once)
        arrived_s = [arrived.at_s for arrived in server.arrived]
    late = [outcome for outcome in run.outcomes if _lag_ms(outcome) > 50]
    assert late
    for outcome in late:
        assert outcome.first_token_at_ms is not None
        assert outcome.first_token_at_ms - outcome.planned.send_at_ms > 50
    number = late[0].planned.number
    apart_ms = (arrived_s[number] - arrived_s[0]) * 1000
    sent_apart_ms = late[0].sent_at_ms - run.outcomes[0].sent_at_ms
    assert abs(apart_ms - sent_apart_ms) < 45, "sent_at_ms is not when it was sent"
    assert run.generator_loop_lag_p99_ms > 50
    assert "bottleneck" in str(verdict(run))


def _lag_ms(outcome: Outcome) -> float:
    return outcome.sent_at_ms - outcome.planned.send_at_ms


async def test_no_request_waits_for_another() -> None:
    """A server that answers nothing gets all the same each request at its time, on as many
    connections as that takes."""
    with scripted_http([Act.HANG, *ANSWER]) as server:
        due_ms = [n * 4.0 for n in range(100)]
        running = asyncio.create_task(target(server.url).run(workload(*due_ms)))
        await server.wait_for(100)
        assert server.connections == 100
        server.release()
        run = await running
        first_s = server.arrived[0].at_s
        late_ms = [
            (arrived.at_s - first_s) * 1000 - due
            for arrived, due in zip(server.arrived, due_ms, strict=True)
        ]
    assert quarter(sorted(late_ms)) < 10
    assert {outcome.end for outcome in run.outcomes} == {"ok"}
    lags = send_lags_ms(run)
    assert quarter(lags) <= 3


async def test_a_target_slow_to_take_connections_is_measured_not_excused() -> None:
    """What it costs is in the latency, and is not the generator's lag."""

    class Slow(Connections):
        async def open(self) -> Connection:
            await asyncio.sleep(0.15)
            return await super().open()

    with scripted_http(ANSWER) as server:
        loop = HttpTarget(
            server.url, TargetFacts("scripted", None), body_of=lambda _: b"{}", connections=Slow
        )
        run = await loop.run(workload(*[n * 2.0 for n in range(20)]))
    assert min(_lag_ms(outcome) for outcome in run.outcomes) >= 95
    assert all((o.first_token_at_ms or 0) >= o.sent_at_ms for o in run.outcomes)
    assert quarter(send_lags_ms(run)) <= 3


async def test_connections_are_used_again() -> None:
    """One after the other on one connection; and one that its server has closed costs nothing."""
    with scripted_http(ANSWER) as server:
        await target(server.url).run(workload(*[n * 100.0 for n in range(8)]))
        assert server.connections < 4, "a new one only where an answer took over 50 ms"
    with scripted_http([*ANSWER, Act.CLOSE]) as server:
        run = await target(server.url).run(workload(*[n * 100.0 for n in range(3)]))
        assert server.connections == 3
    assert [outcome.end for outcome in run.outcomes] == ["ok"] * 3


async def test_a_faster_clock() -> None:
    """On one of tenfold speed the schedule takes a tenth of the time, and what is measured is the
    target's: 20 real ms to the first token are 200."""
    script: list[Step] = [STREAM_HEAD, 0.02, event(events.content("a")), *TAIL]
    with scripted_http(script) as server:
        began_s = time.monotonic()
        run = await target(server.url, speed=10.0).run(workload(*[n * 200.0 for n in range(20)]))
        took_s = time.monotonic() - began_s
    assert took_s < 3.0, "3,800 ms of the target's are 380 real ones"
    assert all((o.first_token_at_ms or 0) - o.sent_at_ms >= 200 for o in run.outcomes)
    errors_ms = _ttft_errors_ms(run, server, content=1)
    assert errors_ms[0] >= 0
    assert quarter(errors_ms) <= 5


async def test_an_early_end_accounts_for_all() -> None:
    """Ctrl-C is a cancel: streams are cut, the rest timed out, and nothing is raised."""
    with scripted_http(lambda n: [*TOKEN, Act.HANG] if n == 0 else [Act.HANG]) as server:
        running = asyncio.create_task(target(server.url).run(workload(0.0, 5.0, 60_000.0)))
        await server.wait_for(2)
        await asyncio.sleep(0.05)
        running.cancel()
        run = await running
    assert [outcome.end for outcome in run.outcomes] == ["cut", "timeout", "timeout"]
    assert run.stopped_at_ms is not None
    assert len(send_lags_ms(run)) == 2


async def test_outcomes_are_in_the_order_of_the_workload() -> None:
    """Also where that is not the order of sending. Progress ends with all accounted for."""
    said: list[Counts] = []
    with scripted_http(ANSWER) as server:
        run = await target(server.url).run(workload(600.0, 0.0), said.append)
        assert [arrived.body for arrived in server.arrived] == [b'{"number": 1}', b'{"number": 0}']
    assert [outcome.planned.number for outcome in run.outcomes] == [0, 1]
    assert (said[-1].sent, said[-1].ok, said[-1].errors) == (2, 2, 0)
    assert said[-1].ttft_p95_ms is not None
    assert len(said) > 1


async def test_what_the_caller_breaks_is_raised() -> None:
    """It ends the run, rather than leave it without an end."""

    def broken(request: PlannedRequest) -> bytes:
        raise RuntimeError(f"of request {request.number}")

    def broken_display(_: Counts) -> None:
        raise RuntimeError("of the display")

    with scripted_http([Act.HANG]) as server:
        with pytest.raises(RuntimeError, match="of the display"):
            await target(server.url).run(workload(0.0, 5.0), broken_display)
        loop = HttpTarget(server.url, TargetFacts("scripted", None), body_of=broken)
        with pytest.raises(RuntimeError, match="of request 0"):
            await loop.run(workload(0.0, 5.0))


async def test_a_body_that_breaks_late_is_raised_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made while the run goes on."""

    def broken(request: PlannedRequest) -> bytes:
        if request.number == 2:
            raise RuntimeError("of the third")
        return b"{}"

    monkeypatch.setattr(
        http_target, "RequestBytes", functools.partial(RequestBytes, ahead_bytes_max=1)
    )
    with scripted_http([Act.HANG]) as server:
        loop = HttpTarget(server.url, TargetFacts("scripted", None), body_of=broken)
        with pytest.raises(RuntimeError, match="of the third"):
            await loop.run(workload(0.0, 5.0, 10.0, 60_000.0))
        assert len(server.arrived) <= 2


async def test_connections_may_lead_elsewhere() -> None:
    """Whoever makes them decides where each leads."""
    with scripted_http(ANSWER) as server:
        loop = HttpTarget(
            "http://127.0.0.1:9",
            TargetFacts("scripted", None),
            body_of=lambda _: b"{}",
            connections=lambda _: Connections(address_of(server.url)),
        )
        assert [outcome.end for outcome in (await loop.run(workload(0.0))).outcomes] == ["ok"]


async def test_nothing_to_send() -> None:
    """An empty schedule is over at once."""
    assert (await target("http://127.0.0.1:9").run(workload())).outcomes == []


async def test_small_writes_leave_at_once() -> None:
    """Nagle's algorithm is off, as on every connection of asyncio and uvloop."""
    with scripted_http(ANSWER) as server:
        connection = await Connections(address_of(server.url)).open()
        assert connection._transport is not None
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        connection.abandon()
