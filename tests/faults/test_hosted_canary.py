"""INV-13, Q18: with every worker dead, however they died and whatever is asked, a tenant that keeps
its data here gets an honest refusal, and the host that stands for the provider gets 0 bytes."""

import http.client
import json
import os
import signal
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import servers
from canary import USAGE, black_hole, redirecting_worker
from fallback_system import IMAGE, POLICY_IN_FORCE_S, Fallback, fallback_system
from weir_dev import Json, Reply
from worker_process import WorkerProcess, running_worker

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FORMS: dict[str, Json] = {
    "whole": {},
    "stream": {"stream": True},
    "stream with usage": {"stream": True, "stream_options": {"include_usage": True}},
    "three choices": {"n": 3},
    "three choices as a stream": {"n": 3, "stream": True},
    "batch": {"service_tier": "flex"},
    "tools": {"tools": [TOOL]},
    "an image": {"messages": [{"role": "user", "content": [IMAGE]}]},
    "json": {"response_format": {"type": "json_object"}},
    "without a maximum": {"max_tokens": None},
}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fallback]:
    """One system for all; each test chooses its workers."""
    with fallback_system(tmp_path_factory.mktemp("fallback")) as started:
        yield started


@contextmanager
def nothing_leaves(system: Fallback) -> Iterator[None]:
    """The canary sees neither byte nor connection."""
    before = (system.canary.connections, len(system.canary.received))
    yield
    assert (system.canary.connections, len(system.canary.received)) == before


@contextmanager
def a_worker_of(system: Fallback) -> Iterator[WorkerProcess]:
    """The fleet is this one worker, healthy."""
    with running_worker("simulated", "--model", system.system.model) as worker:
        system.use(worker.url, healthy=True)
        yield worker


def assert_refused(reply: Reply, *, code: str = "no_worker") -> None:
    """503, in OpenAI's words, with when to come back."""
    assert (reply.status, reply.error["code"]) == (503, code), reply.raw
    assert int(reply.headers["retry-after"]) >= 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("policy", [None, "self_hosted_only"])
def test_whatever_is_asked(system: Fallback, form: str, policy: str | None) -> None:
    """All workers unreachable: by default and by choice."""
    system.use_dead(2)
    seen = system.seen_by_a(policy)
    with nothing_leaves(system):
        assert_refused(seen.ask(**FORMS[form]))


@pytest.mark.parametrize("prompt", ["one", ["one", "two"]])
def test_completions(system: Fallback, prompt: object) -> None:
    """The other endpoint."""
    system.use_dead()
    seen = system.seen_by_a(None).system
    with nothing_leaves(system):
        assert_refused(seen.post({"model": seen.model, "prompt": prompt}, path="/v1/completions"))


def test_no_worker_at_all(system: Fallback) -> None:
    """Nothing is registered."""
    system.use(healthy=False)
    with nothing_leaves(system):
        assert_refused(system.seen_by_a(None).ask())


def test_drained(system: Fallback) -> None:
    """Healthy, but not to be used."""
    seen = system.seen_by_a(None)
    with a_worker_of(system):
        path = f"/admin/v1/workers/{system.registered[0]}/drain"
        assert seen.system.admin("POST", path).status == 200
        time.sleep(POLICY_IN_FORCE_S)
        with nothing_leaves(system):
            assert_refused(seen.ask())


@pytest.mark.parametrize("stream", [True, False])
def test_killed_just_now(system: Fallback, stream: bool) -> None:
    """Before any probe has noticed: the request itself finds out."""
    seen = system.seen_by_a(None)
    with a_worker_of(system) as worker:
        worker.process.kill()
        worker.process.wait()
        with nothing_leaves(system):
            assert_refused(seen.ask(stream=stream))
            assert_refused(seen.ask(stream=stream, gateway=1))


def test_frozen(system: Fallback) -> None:
    """It takes connections and answers nothing; the probes notice."""
    seen = system.seen_by_a(None)
    with a_worker_of(system) as worker:
        os.kill(worker.process.pid, signal.SIGSTOP)
        try:
            with nothing_leaves(system):
                system.until_fleet_is(system.registered, healthy=False)
                assert_refused(seen.ask())
        finally:
            os.kill(worker.process.pid, signal.SIGCONT)


def test_connecting_hangs(system: Fallback) -> None:
    """A host that is gone from the network."""
    with black_hole() as url:
        system.use(url, healthy=False)
        with nothing_leaves(system):
            assert_refused(system.seen_by_a(None).ask())


def test_a_name_that_does_not_resolve(system: Fallback) -> None:
    """A worker's name that DNS has lost."""
    system.use("http://nowhere.invalid:30000", healthy=False)
    with nothing_leaves(system):
        assert_refused(system.seen_by_a(None).ask())


@pytest.mark.parametrize("after_tokens", [0, 3])
def test_it_dies_of_the_request(system: Fallback, after_tokens: int) -> None:
    """Before the first byte it is a status, after it the explicit error event."""
    seen = system.seen_by_a(None)
    with a_worker_of(system) as worker:
        fault = {"kind": "die", "after_tokens": after_tokens}
        assert seen.system.request("POST", worker.url + "/weir/faults", fault).status < 300
        with nothing_leaves(system):
            reply = seen.ask(stream=True, max_tokens=200)
        if reply.status == 200:
            assert "error" in reply.events[-1]
            assert b"[DONE]" not in reply.raw
        else:
            assert reply.status in (502, 503)


def test_it_fails_every_request(system: Fallback) -> None:
    """It lives and answers 500."""
    seen = system.seen_by_a(None)
    with a_worker_of(system) as worker:
        fault = {"kind": "error_500", "count": None}
        assert seen.system.request("POST", worker.url + "/weir/faults", fault).status < 300
        with nothing_leaves(system):
            assert seen.ask().status == 502


def test_a_key_that_tightens(system: Fallback) -> None:
    """Its tenant may, the key may not (Q19)."""
    system.use_dead()
    seen = system.seen_by("hosted_allowed")
    (key,) = seen.system.admin("GET", f"/admin/v1/tenants/{seen.system.tenant}/keys").json["items"]
    limits = {"data_policy": "self_hosted_only"}
    assert seen.system.admin("PUT", f"/admin/v1/keys/{key['id']}/limits", limits).status == 200
    time.sleep(POLICY_IN_FORCE_S)
    with nothing_leaves(system):
        assert_refused(seen.ask())


def test_a_header_that_tightens(system: Fallback) -> None:
    """And one that would loosen does nothing (Q18)."""
    system.use_dead()
    with nothing_leaves(system):
        for policy, header in (
            ("hosted_allowed", "self_hosted_only"), ("self_hosted_only", "hosted_allowed"),
        ):  # fmt: skip
            seen = system.seen_by_a(policy).system
            headers = {"x-weir-data-policy": header}
            assert_refused(seen.post(seen.body(), headers=headers))


def test_a_header_given_twice(system: Fallback) -> None:
    """The second does not undo the first, in whatever order."""
    system.use_dead()
    seen = system.seen_by_a("hosted_allowed").system
    with nothing_leaves(system):
        for values in (
            ("self_hosted_only", "hosted_allowed"), ("hosted_allowed", "self_hosted_only"),
        ):  # fmt: skip
            parts = urllib.parse.urlsplit(seen.gateway())
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
            body = json.dumps(seen.body()).encode()
            connection.putrequest("POST", "/v1/chat/completions")
            connection.putheader("authorization", f"Bearer {seen.key()}")
            connection.putheader("content-length", str(len(body)))
            for value in values:
                connection.putheader("x-weir-data-policy", value)
            connection.endheaders(body)
            assert connection.getresponse().status == 400
            connection.close()


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_worker_that_redirects_to_the_provider(system: Fallback, status: int) -> None:
    """Neither probes nor counting nor a request follows it, and such a worker is not healthy."""
    seen, target = system.seen_by_a(None), system.canary.url
    everything = redirecting_worker(target, status=status, paths=("/ready", "/v1/"))
    with everything as url, nothing_leaves(system):
        system.use(url, healthy=False)
        assert_refused(seen.ask())
    counting = redirecting_worker(target, status=status, paths=("/v1/tokenize",))
    with counting as url, nothing_leaves(system):
        system.use(url, healthy=True)
        assert seen.ask().status == 502


def test_a_policy_that_was_withdrawn(system: Fallback) -> None:
    """A second later no gateway sends anything."""
    system.use_dead()
    seen = system.seen_by("hosted_allowed")
    assert seen.ask().status == 200
    seen.set_policy("self_hosted_only")
    with nothing_leaves(system):
        for gateway in range(4):
            assert_refused(seen.ask(gateway=gateway))


def test_batch_waits(system: Fallback) -> None:
    """Whatever is allowed, what may wait for the fleet does not go elsewhere."""
    system.use_dead()
    with nothing_leaves(system):
        assert_refused(system.seen_by_a("hosted_allowed").ask(service_tier="flex"))


def test_a_suspended_tenant(system: Fallback) -> None:
    """Allowed once is not allowed for ever."""
    system.use_dead()
    seen = system.seen_by("hosted_allowed")
    path = f"/admin/v1/tenants/{seen.system.tenant}"
    assert seen.system.admin("PATCH", path, {"suspended": True}).status == 200
    time.sleep(POLICY_IN_FORCE_S)
    with nothing_leaves(system):
        assert seen.ask().status == 401


@pytest.mark.parametrize("store", ["postgres", "redis"])
def test_a_store_that_hangs(system: Fallback, store: str) -> None:
    """Where the policy, or the lease, cannot be read any more nothing is sent, also for a tenant
    that was allowed."""
    system.use_dead()
    seen = system.seen_by_a("hosted_allowed")
    pid = system.system.ready["pids"][store]
    pids = servers.process_tree(pid) if store == "postgres" else [pid]
    for each in pids:
        os.kill(each, signal.SIGSTOP)
    try:
        time.sleep(2 * POLICY_IN_FORCE_S)
        with nothing_leaves(system):
            reply = seen.ask()
            assert reply.status == 503
    finally:
        for each in pids:
            os.kill(each, signal.SIGCONT)


def test_gateways_that_come_back(system: Fallback) -> None:
    """Killed and started again, with nothing in memory."""
    system.use_dead()
    seen = system.seen_by_a(None)
    before = system.system.ready["pids"]["gateways"]
    with nothing_leaves(system):
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                reply = seen.ask()
            except (OSError, http.client.HTTPException):
                continue
            assert_refused(reply)
            if not set(before) & set(system.system.ready["pids"]["gateways"]):
                break
        assert_refused(seen.ask())


def test_many_at_once_while_it_dies(system: Fallback) -> None:
    """Whatever state each request was in when the worker was killed."""
    seen = system.seen_by_a(None)
    with a_worker_of(system) as worker:
        replies: list[Reply] = []

        def ask(index: int) -> None:
            replies.append(seen.ask(stream=bool(index % 2), max_tokens=300, gateway=index))

        clients = [threading.Thread(target=ask, args=(index,)) for index in range(24)]
        with nothing_leaves(system):
            for index, client in enumerate(clients):
                client.start()
                if index == 12:
                    worker.process.kill()
            for client in clients:
                client.join()
        assert len(replies) == 24
        assert all(b"[DONE]" not in reply.raw for reply in replies)
        assert {reply.status for reply in replies} <= {200, 502, 503}


ANSWERED: dict[str, Callable[[Fallback], Reply]] = {
    "whole": lambda seen: seen.ask(),
    "stream": lambda seen: seen.ask(stream=True),
    "key unset": lambda seen: seen.ask(gateway=1),
}


@pytest.mark.parametrize("form", ANSWERED)
async def test_a_tenant_that_allows_it_gets_its_answer(system: Fallback, form: str) -> None:
    """The same dead fleet; its row and its attempts say where it was served, and at what cost."""
    system.use_dead()
    seen = system.seen_by_a("hosted_allowed")
    reply = ANSWERED[form](seen)
    assert reply.status == 200, reply.raw
    assert "From afar." in (reply.text or reply.json["choices"][0]["message"]["content"])
    row = await seen.system.record(reply.headers["x-request-id"])
    assert (row["provider"], row["worker_id"], row["outcome"]) == (
        "hosted:canary", "hosted:canary", "completed",
    )  # fmt: skip
    assert (row["prompt_tokens"], row["output_tokens"]) == (
        USAGE["prompt_tokens"], USAGE["completion_tokens"],
    )  # fmt: skip
    (attempt,) = await seen.system.sql(
        "SELECT * FROM usage_attempts WHERE request_id = $1", row["request_id"]
    )
    assert attempt["provider"] == "hosted:canary"
    assert attempt["provider_request_id"] == "afar-1"
    assert attempt["provider_cost_pico"] == 11 * 400_000 + 3 * 1_600_000
    assert system.canary.bodies[-1]["model"] == "afar-1"
    assert b"provider-key" in system.canary.received
    assert seen.system.key().encode() not in system.canary.received


def test_live_shows_the_provider(system: Fallback) -> None:
    """With what this gateway lets through to it."""
    (shown,) = system.system.admin("GET", "/admin/v1/live").json["hosted"]
    assert shown == {
        "name": "canary", "enabled": True, "models": [system.system.model], "circuit": "closed",
    }  # fmt: skip


async def test_it_gets_its_answer_as_the_worker_dies(system: Fallback) -> None:
    """Connecting fails before the first byte: two attempts, one billed request, one lease."""
    seen = system.seen_by_a("hosted_allowed")
    with a_worker_of(system) as worker:
        worker.process.kill()
        worker.process.wait()
        reply = seen.ask()
    assert reply.status == 200, reply.raw
    row = await seen.system.record(reply.headers["x-request-id"])
    assert row["attempts"] in (1, 2)
    assert row["provider"] == "hosted:canary"
    assert seen.system.leases() == 0
