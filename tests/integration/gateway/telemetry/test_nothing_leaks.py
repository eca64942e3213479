"""INV-12: no prompt, no answer and no key is in metrics or logs, however a request ends."""

import asyncio
import json
import re
import socket
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import engine_events as events
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from recording_worker import RecordingWorker, recording_worker
from trace_receiver import TraceReceiver, trace_receiver
from weir_dev import Json, Reply, WeirDev, weir_dev

PROMPT = "quokka-marmalade"
ANSWER = "tamarind-saffron"
ENGINES = "obsidian-words"
WRONG_KEY = "sk-weir-vermilion-of-nobody"
PASSWORD = "cerulean-password"
ADMINS = "ochre-of-an-administrator"
HEAD = "magenta-in-a-head"
SECRETS = (PROMPT, ANSWER, ENGINES, WRONG_KEY, PASSWORD, ADMINS, HEAD)
NAMED = {"ts", "level", "logger", "message"}
WITHIN_S = 20.0


@dataclass
class Watched:
    """One gateway before one worker, all that it logs, and where its metrics go."""

    system: WeirDev
    worker: RecordingWorker
    receiver: TraceReceiver

    @property
    def log(self) -> str:
        """What the gateway has logged."""
        return "".join(path.read_text() for path in self.system.data_dir.rglob("gateway-*.log"))

    def lines_of(self, request_id: str) -> list[Json]:
        """The lines of a request, once there is one."""
        deadline = time.monotonic() + WITHIN_S
        while True:
            lines = [json.loads(line) for line in self.log.splitlines()]
            found = [line for line in lines if line.get("request_id") == request_id]
            if found:
                return found
            assert time.monotonic() < deadline, f"nothing of {request_id}"
            time.sleep(0.02)

    def metrics(self) -> str:
        """As Prometheus scrapes them."""
        reply = self.system.request("GET", self.system.gateway() + "/metrics")
        assert reply.status == 200
        return reply.raw.decode()

    def pushed(self) -> bytes:
        """The first push that begins after this call."""
        already = len(self.receiver.bodies)
        deadline = time.monotonic() + WITHIN_S
        while len(self.receiver.bodies) < already + 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return self.receiver.bodies[-1]

    def ask(self, **fields: Any) -> Reply:
        """A request with the prompt wherever a client can put it."""
        message = {"role": "user", "name": PROMPT, "content": f"Tell me of {PROMPT}."}
        body = self.system.body(
            messages=[message], user=PROMPT, metadata={PROMPT: PROMPT}, **fields
        )
        return self.system.post(body, headers={"x-request-id": HEAD, "x-of-client": HEAD})


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """It logs all there is."""
    with (
        trace_receiver() as receiver,
        recording_worker() as worker,
        weir_dev(
            tmp_path_factory.mktemp("watched"),
            "--engine",
            worker.url,
            environment={
                # This receiver takes one path.
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": receiver.url + "/v1/traces",
                "WEIR_METRICS_PUSH_MS": "100",
                "WEIR_LOG_FORMAT": "json",
                "WEIR_LOG_LEVEL": "DEBUG",
                "WEIR_LOG_REQUESTS": "all",
            },
        ) as system,
    ):
        yield Watched(system.with_new_tenant(), worker, receiver)


@pytest.fixture(autouse=True)
def _as_it_was_made(watched: Watched) -> None:
    watched.worker.reset()
    watched.worker.answer = events.answer([ANSWER, f" and {ANSWER}"])


def odd(finish: str) -> list[bytes]:
    """An answer that ends with a reason that nobody has heard of."""
    return [event.replace(b'"stop"', json.dumps(finish).encode()) for event in events.answer(["a"])]


def refused(watched: Watched) -> None:
    """Before anything is sent: a body, a field, a value, a model, a header, a key."""
    post, body = watched.system.post, watched.system.body
    for status, reply in (
        (400, post(f'{{"messages": "{PROMPT}'.encode())),
        (400, post(body(**{PROMPT: PROMPT}))),
        (400, post(body(messages=[{"role": PROMPT, "content": PROMPT}]))),
        (400, post(body(temperature=PROMPT))),
        (404, post(body(model=PROMPT))),
        (401, post(body(PROMPT), token=WRONG_KEY)),
        (400, post(body(PROMPT, max_tokens=10**9))),
        (404, post(body(PROMPT), path=f"/v1/{PROMPT}")),
    ):
        assert reply.status == status, reply.raw


def failed_by_engine(watched: Watched) -> None:
    """It quotes the prompt in a refusal, a failure, an event, what is no event, and breaks off."""
    quoted = json.dumps({"object": "error", "message": f"{ENGINES} {PROMPT}", "code": 400}).encode()
    for status in (400, 422, 500, 503):
        watched.worker.status, watched.worker.answer = status, [quoted]
        assert watched.ask().status >= 400
    watched.worker.status = 200
    begun = [events.role(), events.content(ANSWER)]
    said = json.dumps({"error": {"message": f"{ENGINES} {PROMPT}", "code": 500}}).encode()
    for answer in ([said], [*begun, said], [*begun, f"{ENGINES}{{".encode()], begun):
        watched.worker.answer = answer
        for stream in (False, True):
            watched.ask(stream=stream)


def refused_by_postgres(watched: Watched) -> None:
    """A row that breaks a constraint, which the driver's error quotes: it becomes a dead letter."""
    sql = watched.system.sql
    rule = f"CHECK (finish_reason IS DISTINCT FROM '{ANSWER}') NOT VALID"
    asyncio.run(sql(f"ALTER TABLE usage_record ADD CONSTRAINT of_a_test {rule}"))
    watched.worker.answer = odd(ANSWER)
    watched.ask()
    deadline = time.monotonic() + WITHIN_S
    while "\nweir_dead_letters 0.0\n" in watched.metrics():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    asyncio.run(sql("ALTER TABLE usage_record DROP CONSTRAINT of_a_test"))


def administered(watched: Watched) -> None:
    """A log-in that fails, and administration with what it cannot be."""
    system = watched.system
    url = system.gateway()
    form = urllib.parse.urlencode({"email": f"{ADMINS}@x.example", "password": PASSWORD})
    typed = {"content-type": "application/x-www-form-urlencoded", "origin": url}
    assert (
        system.request("POST", url + "/console/login", form.encode(), headers=typed).status >= 400
    )
    system.request("POST", url + "/console/login", b"\xff" + form.encode(), headers=typed)
    assert system.request("GET", url + "/admin/v1/live", token=ADMINS).status == 401
    assert system.admin("POST", "/admin/v1/tenants", {"id": [ADMINS]}).status == 422
    assert system.admin("GET", f"/admin/v1/tenants/{ADMINS}").status == 404
    assert system.admin("POST", "/admin/v1/models", {"id": ADMINS, "context_tokens": ADMINS}).status
    system.request("GET", f"{url}/metrics?key={WRONG_KEY}")


def not_even_http(watched: Watched) -> None:
    """What the server cannot read, and a client that leaves in the middle."""
    host, _, port = watched.system.gateway().removeprefix("http://").partition(":")
    for data in (
        f"{HEAD} {PROMPT}\r\n\r\n",
        f"POST /v1/chat/completions HTTP/1.1\r\n{HEAD}\r\n\r\n",
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 900\r\n\r\n{PROMPT}",
    ):
        with socket.create_connection((host, int(port)), timeout=5) as client:
            client.sendall(data.encode())


WAYS: tuple[Callable[[Watched], None], ...] = (
    refused, failed_by_engine, refused_by_postgres, administered, not_even_http,
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_inv_12_nothing_of_it_is_in_metrics_or_logs(
    watched: Watched, way: Callable[[Watched], None]
) -> None:
    """Nor the keys that are right, nor an administrator's token; each line of the log is JSON."""
    way(watched)
    watched.worker.reset()
    watched.worker.answer = events.answer([ANSWER])
    assert watched.ask().status == 200  # all that was before it is logged by now
    secret = watched.system.key()
    token = watched.system.ready["users"]["admin"]["token"]
    assert any(PROMPT.encode() in seen.body for seen in watched.worker.completions)
    found = {
        "log": watched.log.encode(),
        "scraped": watched.metrics().encode(),
        "pushed": watched.pushed(),
    }
    for name, content in found.items():
        for word in (*SECRETS, secret, token):
            assert word.encode() not in content, (name, word)
            assert word.encode().hex().encode() not in content, (name, word)
    for line in watched.log.splitlines():
        assert json.loads(line).keys() >= NAMED


def test_a_request_that_failed_is_found_by_its_id(watched: Watched) -> None:
    """The `x-request-id` of the answer: how it ended, and what its client was told."""
    watched.worker.answer = [events.role()]
    reply = watched.ask()
    assert reply.status == 502
    lines = watched.lines_of(reply.headers["x-request-id"])
    by_message = {line["message"]: line for line in lines}
    assert by_message["answered with an error"]["code"] == "worker_failed"
    ended = by_message["request ended"]
    assert (ended["outcome"], ended["tenant"]) == ("worker_failed", watched.system.tenant)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", ended["ts"])
    assert ended["gateway"]


def test_what_is_pushed_is_what_is_scraped(watched: Watched) -> None:
    """The same names, with who sends them."""
    watched.ask()
    (resource,) = ExportMetricsServiceRequest.FromString(watched.pushed()).resource_metrics
    who = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert who["service.name"] == "weir-gateway"
    assert who["service.instance.id"]
    scraped = watched.metrics()
    names = {metric.name for metric in resource.scope_metrics[0].metrics}
    assert {
        "weir_requests_ended",
        "weir_time_to_first_token_seconds",
        "process_cpu_seconds",
    } < names
    assert all(f"# TYPE {name}" in scraped for name in names)
