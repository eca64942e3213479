"""Every line of a request has its id, whatever runs it; and what a request's own line says."""

import asyncio
import logging
from contextvars import copy_context
from uuid import UUID

import engine_events as events
import pytest
from log_capture import logging_to
from memory_gateway import MemoryGateway
from redis.exceptions import ConnectionError as RedisConnectionError
from scripted_engine import RecordingConnection
from tenant_examples import COUNTED, SECRET, a_tenant

from gateway.adapters.redis_pipeline import Pipe, Place
from gateway.adapters.redis_url import Login
from gateway.errors import WorkerFailed
from gateway.telemetry import request_lines
from gateway.telemetry.log_context import begin_request, name_caller
from gateway.telemetry.request_lines import DROPPED, LINES_PER_S, log_error_answer

LOG = logging.getLogger("gateway.test")
ONE = UUID("019aa000-0000-7000-8000-000000000001")
TWO = UUID("019aa000-0000-7000-8000-000000000002")


def id_of(client: RecordingConnection) -> str:
    """The `x-request-id` that the client was told."""
    return dict(client.headers)[b"x-request-id"].decode()


@pytest.fixture(autouse=True)
def _nothing_written_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_lines, "_bound", request_lines.Bound())


async def test_what_a_request_begins_logs_for_it_and_nothing_else_does() -> None:
    """Subtasks and timers of two at once; a trace's id where there is one; afterwards nobody's."""

    async def work(request_id: UUID, trace_id: int) -> None:
        begin_request(request_id, trace_id)
        asyncio.get_running_loop().call_soon(LOG.info, "timer")
        async with asyncio.TaskGroup() as group:
            for name in ("left", "right"):
                group.create_task(step(name))

    async def step(name: str) -> None:
        await asyncio.sleep(0)
        LOG.info(name)

    with logging_to(form="json") as log:
        await asyncio.gather(
            asyncio.create_task(work(ONE, 0xAB)), asyncio.create_task(work(TWO, 0))
        )
        LOG.info("after")
    found = [(line.get("request_id"), line["message"]) for line in log.objects]
    assert sorted(found[:-1]) == sorted(
        (str(each), name) for each in (ONE, TWO) for name in ("left", "right", "timer")
    )
    assert found[-1] == (None, "after")
    traces = {line.get("request_id"): line.get("trace_id") for line in log.objects}
    assert traces == {str(ONE): f"{0xAB:032x}", str(TWO): None, None: None}


async def test_a_request_that_fails_is_found_by_the_id_that_its_client_was_told() -> None:
    """With how it ended, and what the client was told."""
    gateway = MemoryGateway([events.role(), WorkerFailed("secret words")])
    with logging_to(form="json") as log:
        client = await gateway.post(stream=True)
    assert {line["request_id"] for line in log.objects} == {id_of(client)}
    ended = next(line for line in log.objects if line["message"] == "request ended")
    assert (ended["outcome"], ended["tenant"], ended["worker"]) == ("worker_failed", "acme", "w0")
    told = next(line for line in log.objects if line["message"] == "answered with an error")
    assert told["code"] == "worker_failed"
    assert (told["tenant"], told["key"], told["model"]) == ("acme", ended["key"], "m")
    assert "secret words" not in log.getvalue()


@pytest.mark.parametrize(
    ("requests", "expected"),
    [("failed", []), ("none", []), ("all", ["completed"])],
)
async def test_one_that_is_served_has_a_line_where_that_is_asked_for(
    requests: str, expected: list[str]
) -> None:
    """Off by default: it costs more than all metrics of a request together."""
    gateway = MemoryGateway(events.answer(["a"]))
    with logging_to(form="json", requests=requests) as log:
        await gateway.post()
    assert [line["outcome"] for line in log.objects] == expected


@pytest.mark.parametrize(("requests", "lines"), [("failed", 0), ("all", 1)])
async def test_what_a_client_does_wrong_fills_no_disk(requests: str, lines: int) -> None:
    """Nobody without a key writes to the log."""
    gateway = MemoryGateway()
    with logging_to(form="json", requests=requests) as log:
        await gateway.serve(gateway.a_client(), headers={b"authorization": b"Bearer sk-weir-no"})
    assert [line["code"] for line in log.objects] == ["invalid_api_key"] * lines


def test_of_a_flood_of_failures_so_many_a_second_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others are counted; another tenant's failure, and a bug, have their lines."""
    monkeypatch.setattr("gateway.telemetry.request_lines.time.monotonic_ns", lambda: 0)
    monkeypatch.setattr(request_lines, "_bound", request_lines.Bound())
    before = DROPPED._value.get()

    def one(tenant: str, code: str) -> None:
        name_caller(tenant, "k")
        log_error_answer(503, code, is_fault=True)

    with logging_to(form="json") as log:
        for _ in range(2_000):
            copy_context().run(one, "globex", "no_capacity")
        copy_context().run(one, "acme", "no_capacity")
        copy_context().run(one, "globex", "internal_error")
    written = [(line["tenant"], line["code"]) for line in log.objects]
    assert written[:-2] == [("globex", "no_capacity")] * (LINES_PER_S // 5)
    assert written[-2:] == [("acme", "no_capacity"), ("globex", "internal_error")]
    assert DROPPED._value.get() - before == 2_000 - LINES_PER_S // 5


def test_of_what_is_no_failure_so_many_a_second_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of one tenant too; they take no room of failures'."""
    monkeypatch.setattr("gateway.telemetry.request_lines.time.monotonic", lambda: 0.0)
    before = DROPPED._value.get()
    with logging_to(requests="all") as log:
        for _ in range(LINES_PER_S * 3):
            log_error_answer(400, "invalid_value", is_fault=False)
        log_error_answer(503, "no_worker", is_fault=True)
    dropped = DROPPED._value.get() - before
    assert len(log.lines) + dropped == LINES_PER_S * 3 + 1
    assert len(log.lines) - 1 == LINES_PER_S
    assert "no_worker" in log.lines[-1]


def test_the_least_level_holds_for_lines_of_requests_too() -> None:
    """With WEIR_LOG_LEVEL=ERROR a warning is none of them."""
    with logging_to("ERROR", requests="all") as log:
        log_error_answer(503, "no_capacity", is_fault=True)
        log_error_answer(400, "invalid_value", is_fault=False)
    assert log.lines == []


@pytest.mark.parametrize("part", ["tokenizer.count", "journal.admitted", "journal.ended",
                                  "engine.stream", "leases.settle"])  # fmt: skip
async def test_inv_12_a_bug_of_ours_that_quotes_the_prompt_is_logged_without_it(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever part of the straight line it is in: the line has the request's id, the type and
    the place."""

    def breaks(*_: object, **__: object) -> None:
        raise ValueError("a secret prompt", SECRET)

    gateway = MemoryGateway(events.answer(["a secret answer"]))
    gateway.directory.one_tenant = a_tenant(COUNTED)
    whole, _, name = part.partition(".")
    monkeypatch.setattr(getattr(gateway, whole), name, breaks)
    with logging_to("DEBUG", form="json", requests="all") as log:
        client = await gateway.post(messages=[{"role": "user", "content": "a secret prompt"}])
    failures = [line for line in log.objects if line.get("error_type") == "ValueError"]
    assert failures
    assert {line["request_id"] for line in failures} == {id_of(client)}
    assert all("test_request_lines.py" in line["message"] for line in failures)
    for secret in ("secret prompt", "secret answer", SECRET):
        assert secret not in log.getvalue()


async def test_what_outlives_a_request_is_nobodys() -> None:
    """The connection to Redis is made by whoever calls first, and told of by nobody's line."""

    async def nowhere() -> Place:
        raise OSError("away")

    async def first_to_call(pipe: Pipe) -> None:
        begin_request(ONE)
        with pytest.raises(RedisConnectionError):
            await pipe.call("PING")

    pipe = Pipe(nowhere, Login(), timeout_s=1)
    with logging_to(form="json") as log:
        await asyncio.create_task(first_to_call(pipe))
        await pipe.aclose()
    (line,) = log.objects
    assert line["message"] == "Redis cannot be reached: OSError"
    assert "request_id" not in line
