"""Traces as a collector receives them: over real HTTP, from a real gateway, decoded."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import engine_events as events
import pytest
from canary import USAGE, Canary, running_canary
from recording_worker import RecordingWorker, recording_worker
from trace_receiver import Received, TraceReceiver, trace_receiver, tree
from weir_dev import Json, WeirDev, weir_dev

from gateway.telemetry.trace_names import SPANS

PROMPT = "a prompt like quokka-marmalade that nobody else says"
WORDS = ["answer-of-tamarind", " and-of-saffron"]
ENGINE_WORDS = "engine-words-of-obsidian"
CLIENTS = "4bf92f3577b34da6a3ce929d0e0e4736"
CLIENTS_SPAN = "00f067aa0ba902b7"
TRACEPARENT = {"traceparent": f"00-{CLIENTS}-{CLIENTS_SPAN}-00"}
CLIENT = {**TRACEPARENT, "tracestate": "client=client-state", "baggage": "client=client-baggage"}
CANARYS_WORDS = " afar"
UPSTREAM_HEADERS = {"host", "content-type", "content-length", "accept", "accept-encoding",
                    "user-agent"}  # fmt: skip
"""All that a worker is sent where nothing is traced (`test_recording_worker.py`)."""
WAITS: Json = {
    "max_sequences": 1, "max_queued": 8, "max_wait_ms": 20_000, "data_policy": "hosted_allowed",
}  # fmt: skip


@dataclass
class Traced:
    """One gateway before two workers and a hosted provider, and where its traces go."""

    system: WeirDev
    workers: tuple[RecordingWorker, RecordingWorker]
    canary: Canary
    receiver: TraceReceiver

    def ask(self, headers: dict[str, str] | None = None, *, status: int = 200) -> list[Received]:
        """The trace of one chat completion."""
        body = self.system.body(messages=[{"role": "user", "content": PROMPT}], stream=True)
        reply = self.system.post(body, headers=headers)
        assert reply.status == status, reply.raw
        return self.receiver.trace_of(reply.headers["x-request-id"])


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """It traces every request."""
    folder = tmp_path_factory.mktemp("traced")
    with (
        trace_receiver() as receiver,
        recording_worker() as first,
        recording_worker() as second,
        running_canary() as canary,
        weir_dev(
            folder,
            "--engine",
            "simulated",
            environment={
                "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
                "OTEL_EXPORTER_OTLP_HEADERS": "x-of-operator=yes",
                "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
                "OTEL_METRICS_EXPORTER": "none",
                "WEIR_TRACE_RATIO_PERMILLE": "1000",
            },
        ) as system,
    ):
        for worker in system.ready["workers"]:
            assert system.admin("DELETE", f"/admin/v1/workers/{worker['id']}").status == 204
        for name, each in (("w-1", first), ("w-2", second)):
            body = {"id": name, "model": system.model, "url": each.url}
            assert system.admin("POST", "/admin/v1/workers", body).status == 201
        provider = {
            "name": "canary",
            "url": canary.url,
            "api_key": "provider-key-of-vermilion",
            "models": {system.model: {"name": "afar-1"}},
        }
        assert system.admin("POST", "/admin/v1/hosted", provider).status == 201
        _until(lambda: _healthy(system) == {"w-1", "w-2"})
        yield Traced(system, (first, second), canary, receiver)


def _healthy(system: WeirDev) -> set[str]:
    live = system.admin("GET", "/admin/v1/live").json["workers"]
    return {worker["id"] for worker in live if worker["healthy"]}


def _until(condition: Callable[[], bool], within_s: float = 15.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def traced(started: Traced) -> Traced:
    """The same, the workers as they were made, seen by a tenant of its own."""
    for worker in started.workers:
        worker.reset()
        worker.answer = events.answer(WORDS)
    system = started.system.with_new_tenant(WAITS)
    return Traced(system, started.workers, started.canary, started.receiver)


def failing(traced: Traced, status: int) -> None:
    """Both workers answer with this from now on, in words that quote the prompt."""
    for worker in traced.workers:
        error = {"object": "error", "message": f"{ENGINE_WORDS}: {PROMPT}", "code": status}
        worker.status, worker.answer = status, [json.dumps(error).encode()]


def _parked(system: WeirDev) -> bool:
    live = system.admin("GET", "/admin/v1/live").json
    return any(each["id"] == system.tenant and each["sequences_queued"] for each in live["tenants"])


def shown(spans: list[Received]) -> list[str]:
    """A tree as `docs/operations/tracing.md` prints it."""
    told = ("weir.worker.id", "error.type", "weir.limit.kind", "weir.queue_ms", "weir.outcome")
    return [
        "  ".join(
            [
                "  " * depth + each.span.name,
                f"{each.ms:.1f} ms",
                *(f"{name}={each.says[name]}" for name in told if name in each.says),
            ]
        )
        for depth, each in tree(spans)
    ]


def waited_retried_fell_back(traced: Traced) -> list[Received]:
    """The trace of a request that came while its tenant's only sequence was in use, at a time when
    no worker works."""
    for worker in traced.workers:
        worker.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        before = pool.submit(traced.ask)
        _until(lambda: any(worker.completions for worker in traced.workers))
        after = pool.submit(traced.ask, TRACEPARENT)
        _until(lambda: _parked(traced.system))
        failing(traced, 500)
        for worker in traced.workers:
            worker.gate.set()
        before.result(20)
        return after.result(20)


def test_waited_retried_and_fell_back_is_one_trace(traced: Traced) -> None:
    """Issue 10: a request that waits in the queue, is retried on another worker and then falls back
    to the hosted provider is followed through one trace, looked at in full (`-s` prints it)."""
    spans = waited_retried_fell_back(traced)
    sys.stdout.write("\n".join(["", *shown(spans), ""]))
    assert [(depth, each.name) for depth, each in tree(spans)] == [
        (0, "request"),
        (1, "authenticate"),
        (1, "read"),
        (1, "estimate"),
        (1, "admit"),
        (2, "place"),
        (2, "lease"),
        (2, "parked"),
        (2, "lease"),
        (2, "journal"),
        (1, "stream"),
        *[(2, "route"), (2, "attempt")] * 3,
        (1, "count"),
        (1, "record"),
        (1, "settle"),
    ]
    root, by_name = spans[0], {each.name: each for each in spans}
    refused, had = (each for each in spans if each.name == "lease")
    assert refused.says == {"error.type": "rate_limit_exceeded", "weir.limit.kind": "sequences"}
    assert had.says["weir.lease.sequences"] == 1
    assert by_name["parked"].ms <= root.says["weir.queue_ms"] + 1
    attempts = sorted(
        (each for each in spans if each.name == "attempt"),
        key=lambda each: each.says["weir.attempt"],
    )
    tried = [(each.says["weir.worker.id"], each.says.get("error.type")) for each in attempts]
    assert tried[0][0] == by_name["parked"].says["weir.worker.id"]
    assert {tried[0], tried[1]} == {("w-1", "worker_failed"), ("w-2", "worker_failed")}
    assert tried[2] == ("hosted:canary", None)
    assert [each.failed for each in attempts] == [True, True, False]
    assert root.says["weir.attempts"] == 3
    assert (root.says["gen_ai.provider.name"], root.says["weir.outcome"]) == (
        "hosted:canary",
        "completed",
    )
    for each in spans:
        assert each.says.keys() <= SPANS[each.name]
        assert root.span.start_time_unix_nano <= each.span.start_time_unix_nano
        assert each.span.start_time_unix_nano <= each.span.end_time_unix_nano
        assert each.span.end_time_unix_nano <= root.span.end_time_unix_nano
    assert len({each.span_id for each in spans}) == len(spans)


async def test_the_spans_agree_with_the_row(traced: Traced) -> None:
    """D13: the request's own span carries what is billed, as the row does, each attempt's its own;
    a row's id finds its trace."""
    spans = waited_retried_fell_back(traced)
    root = spans[0].says
    row = await traced.system.record(root["weir.request_id"])
    assert (root["weir.tenant.id"], root["weir.key.id"]) == (row["tenant_id"], row["api_key_id"])
    assert root["gen_ai.usage.input_tokens"] == row["prompt_tokens"] == USAGE["prompt_tokens"]
    assert root["gen_ai.usage.output_tokens"] == row["output_tokens"] == USAGE["completion_tokens"]
    assert root["weir.queue_ms"] == row["queue_ms"] > 0
    assert root["weir.ttft_ms"] == row["ttft_ms"]
    assert root["gen_ai.provider.name"] == row["provider"]
    assert root["weir.attempts"] == row["attempts"]


def test_a_clients_trace_is_gone_on_with_and_told_to_our_workers_alone(traced: Traced) -> None:
    """W3C trace context in and out: the client's span is the parent, a worker is told of the span
    of its attempt, a provider of nothing; no other header of a client's passes."""
    failing(traced, 500)
    seen_before = len(traced.canary.received)
    spans = traced.ask(CLIENT)
    assert (spans[0].trace_id, spans[0].parent_id) == (CLIENTS, CLIENTS_SPAN)
    assert {each.trace_id for each in spans} == {CLIENTS}
    at_workers = {
        each.span_id
        for each in spans
        if each.name == "attempt" and each.says["gen_ai.provider.name"] == "self"
    }
    seen = [each for worker in traced.workers for each in worker.completions]
    told = [dict(each.headers)["traceparent"] for each in seen]
    assert len(told) == 2
    assert set(told) == {f"00-{CLIENTS}-{span_id}-01" for span_id in at_workers}
    names = {name.lower() for each in seen for name, _ in each.headers}
    assert names == {*UPSTREAM_HEADERS, "traceparent"}
    others = [each for worker in traced.workers for each in worker.seen if each not in seen]
    assert not any(name.lower() == "traceparent" for each in others for name, _ in each.headers)
    at_canary = traced.canary.received[seen_before:]
    assert b"POST" in at_canary
    assert b"traceparent" not in at_canary.lower()
    assert CLIENTS.encode() not in at_canary


def test_who_tells_is_named(traced: Traced) -> None:
    """The gateway's own id, and what the operator's environment says of it; the operator's headers
    go to the collector."""
    spans = traced.ask()
    resource = spans[0].resource
    assert resource["service.name"] == "weir-gateway"
    assert resource["service.instance.id"]
    assert resource["deployment.environment.name"] == "test"
    assert all(each["x-of-operator"] == "yes" for each in traced.receiver.headers)
    assert traced.receiver.headers[0]["content-type"] == "application/x-protobuf"


def test_nothing_of_a_prompt_an_answer_a_key_or_an_engine_is_in_a_trace(traced: Traced) -> None:
    """Of whatever happens: an answer, a finish reason that quotes it, engines that fail, refuse and
    quote the prompt, a provider, a body that is none, a key that is none, a client's headers."""
    system = traced.system
    traced.ask({**CLIENT, "user-agent": "agent-of-cinnabar"})
    for worker in traced.workers:
        worker.answer = events.answer(WORDS, reason="stop because of-saffron")
    assert traced.ask()[0].says["gen_ai.response.finish_reasons"] == ["other"]
    for status, answered in ((500, 200), (400, 400)):
        failing(traced, status)
        traced.ask(status=answered)
    bad = system.body(messages=[{"role": "user", "content": PROMPT}], temperature=PROMPT)
    refusals = [
        system.post(bad),
        system.post(PROMPT.encode()),
        system.post(system.body(model=PROMPT)),
        system.post(system.body(), token="sk-weir-of-nobody-cerulean"),
    ]
    assert [each.status for each in refusals] == [400, 400, 404, 401]
    for each in refusals:
        traced.receiver.trace_of(each.headers["x-request-id"])
    sent = b"".join(traced.receiver.bodies)
    assert system.tenant.encode() in sent
    secrets = [
        PROMPT, "quokka-marmalade", *WORDS, "of-saffron", ENGINE_WORDS, system.key(),
        "of-nobody-cerulean", "provider-key-of-vermilion", "agent-of-cinnabar",
        "client-state", "client-baggage", CANARYS_WORDS,
    ]  # fmt: skip
    assert [secret for secret in secrets if secret.encode() in sent] == []


@pytest.mark.parametrize("how", ["answers 500", "hangs"])
def test_a_collector_that_does_not_take_them_harms_no_request(traced: Traced, how: str) -> None:
    """Ten answers at their usual pace, and the metric says what became of the spans."""
    system, receiver = traced.system, traced.receiver
    before = _spans(system, "failed"), _spans(system, "exported")
    try:
        if how == "hangs":
            receiver.gate.clear()
        else:
            receiver.status = 500
        for _ in range(10):
            assert system.post(system.body(stream=True)).status == 200
        if how != "hangs":
            _until(lambda: _spans(system, "failed") > before[0])
    finally:
        receiver.status = 200
        receiver.gate.set()
    traced.ask()
    _until(lambda: _spans(system, "exported") > before[1])


def _spans(system: WeirDev, result: str) -> int:
    page = system.request("GET", system.gateway() + "/metrics").raw.decode()
    found = re.search(rf'^weir_trace_spans_total{{result="{result}"}} (\d+)', page, re.MULTILINE)
    return int(found[1]) if found else 0


def test_what_is_still_to_be_sent_goes_out_when_the_gateway_stops(traced: Traced) -> None:
    """A span waits two seconds for others at most, and none of that at the end."""
    reply = traced.system.post(traced.system.body())
    assert traced.system.stop() == 0
    assert traced.receiver.trace_of(reply.headers["x-request-id"], within_s=0.1)
