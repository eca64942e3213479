"""INV-13, Q18: with every worker dead, however they died and whatever is asked, a tenant that keeps
its data here gets an honest refusal, and the host that stands for the provider gets 0 bytes."""

import http.client
import json
import os
import signal
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import servers
from canary import black_hole, redirecting_worker
from fallback_system import IMAGE, POLICY_IN_FORCE_S, Fallback, a_worker_of
from weir_dev import Json, Reply

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


@contextmanager
def nothing_leaves(fallback: Fallback) -> Iterator[None]:
    """The canary sees neither byte nor connection."""
    before = (fallback.canary.connections, len(fallback.canary.received))
    yield
    assert (fallback.canary.connections, len(fallback.canary.received)) == before


def assert_refused(reply: Reply, *, code: str = "no_worker") -> None:
    """503, in OpenAI's words, with when to come back."""
    assert (reply.status, reply.error["code"]) == (503, code), reply.raw
    assert int(reply.headers["retry-after"]) >= 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("policy", [None, "self_hosted_only"])
def test_whatever_is_asked(fallback: Fallback, form: str, policy: str | None) -> None:
    """All workers unreachable: by default and by choice."""
    fallback.use_dead(2)
    seen = fallback.seen_by_a(policy)
    with nothing_leaves(fallback):
        assert_refused(seen.ask(**FORMS[form]))


@pytest.mark.parametrize("prompt", ["one", ["one", "two"]])
def test_completions(fallback: Fallback, prompt: object) -> None:
    """The other endpoint."""
    fallback.use_dead()
    seen = fallback.seen_by_a(None).system
    with nothing_leaves(fallback):
        assert_refused(seen.post({"model": seen.model, "prompt": prompt}, path="/v1/completions"))


def test_no_worker_at_all(fallback: Fallback) -> None:
    """Nothing is registered."""
    fallback.use(healthy=False)
    with nothing_leaves(fallback):
        assert_refused(fallback.seen_by_a(None).ask())


def test_drained(fallback: Fallback) -> None:
    """Healthy, but not to be used."""
    seen = fallback.seen_by_a(None)
    with a_worker_of(fallback):
        path = f"/admin/v1/workers/{fallback.registered[0]}/drain"
        assert seen.system.admin("POST", path).status == 200
        time.sleep(POLICY_IN_FORCE_S)
        with nothing_leaves(fallback):
            assert_refused(seen.ask())


@pytest.mark.parametrize("stream", [True, False])
def test_killed_just_now(fallback: Fallback, stream: bool) -> None:
    """Before any probe has noticed: the request itself finds out."""
    seen = fallback.seen_by_a(None)
    with a_worker_of(fallback) as worker:
        worker.process.kill()
        worker.process.wait()
        with nothing_leaves(fallback):
            assert_refused(seen.ask(stream=stream))
            assert_refused(seen.ask(stream=stream, gateway=1))


def test_frozen(fallback: Fallback) -> None:
    """It takes connections and answers nothing; the probes notice."""
    seen = fallback.seen_by_a(None)
    with a_worker_of(fallback) as worker:
        os.kill(worker.process.pid, signal.SIGSTOP)
        try:
            with nothing_leaves(fallback):
                fallback.until_fleet_is(fallback.registered, healthy=False)
                assert_refused(seen.ask())
        finally:
            os.kill(worker.process.pid, signal.SIGCONT)


def test_connecting_hangs(fallback: Fallback) -> None:
    """A host that is gone from the network."""
    with black_hole() as url:
        fallback.use(url, healthy=False)
        with nothing_leaves(fallback):
            assert_refused(fallback.seen_by_a(None).ask())


def test_a_name_that_does_not_resolve(fallback: Fallback) -> None:
    """A worker's name that DNS has lost."""
    fallback.use("http://nowhere.invalid:30000", healthy=False)
    with nothing_leaves(fallback):
        assert_refused(fallback.seen_by_a(None).ask())


@pytest.mark.parametrize("after_tokens", [0, 3])
def test_it_dies_of_the_request(fallback: Fallback, after_tokens: int) -> None:
    """Before the first byte it is a status, after it the explicit error event."""
    seen = fallback.seen_by_a(None)
    with a_worker_of(fallback) as worker:
        fault = {"kind": "die", "after_tokens": after_tokens}
        assert seen.system.request("POST", worker.url + "/weir/faults", fault).status < 300
        with nothing_leaves(fallback):
            reply = seen.ask(stream=True, max_tokens=200)
        if reply.status == 200:
            assert "error" in reply.events[-1]
            assert b"[DONE]" not in reply.raw
        else:
            assert reply.status in (502, 503)


def test_it_fails_every_request(fallback: Fallback) -> None:
    """It lives and answers 500."""
    seen = fallback.seen_by_a(None)
    with a_worker_of(fallback) as worker:
        fault = {"kind": "error_500", "count": None}
        assert seen.system.request("POST", worker.url + "/weir/faults", fault).status < 300
        with nothing_leaves(fallback):
            assert seen.ask().status == 502


def test_a_key_that_tightens(fallback: Fallback) -> None:
    """Its tenant may, the key may not (Q19)."""
    fallback.use_dead()
    seen = fallback.seen_by("hosted_allowed")
    (key,) = seen.system.admin("GET", f"/admin/v1/tenants/{seen.system.tenant}/keys").json["items"]
    limits = {"data_policy": "self_hosted_only"}
    assert seen.system.admin("PUT", f"/admin/v1/keys/{key['id']}/limits", limits).status == 200
    time.sleep(POLICY_IN_FORCE_S)
    with nothing_leaves(fallback):
        assert_refused(seen.ask())


def test_a_header_that_tightens(fallback: Fallback) -> None:
    """And one that would loosen does nothing (Q18)."""
    fallback.use_dead()
    with nothing_leaves(fallback):
        for policy, header in (
            ("hosted_allowed", "self_hosted_only"), ("self_hosted_only", "hosted_allowed"),
        ):  # fmt: skip
            seen = fallback.seen_by_a(policy).system
            headers = {"x-weir-data-policy": header}
            assert_refused(seen.post(seen.body(), headers=headers))


def test_a_header_given_twice(fallback: Fallback) -> None:
    """The second does not undo the first, in whatever order."""
    fallback.use_dead()
    seen = fallback.seen_by_a("hosted_allowed").system
    with nothing_leaves(fallback):
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
def test_a_worker_that_redirects_to_the_provider(fallback: Fallback, status: int) -> None:
    """Neither probes nor counting nor a request follows it, and such a worker is not healthy."""
    seen, target = fallback.seen_by_a(None), fallback.canary.url
    everything = redirecting_worker(target, status=status, paths=("/ready", "/v1/"))
    with everything as url, nothing_leaves(fallback):
        fallback.use(url, healthy=False)
        assert_refused(seen.ask())
    counting = redirecting_worker(target, status=status, paths=("/v1/tokenize",))
    with counting as url, nothing_leaves(fallback):
        fallback.use(url, healthy=True)
        assert seen.ask().status == 502


def test_a_policy_that_was_withdrawn(fallback: Fallback) -> None:
    """A second later no gateway sends anything."""
    fallback.use_dead()
    seen = fallback.seen_by("hosted_allowed")
    assert seen.ask().status == 200
    seen.set_policy("self_hosted_only")
    with nothing_leaves(fallback):
        for gateway in range(4):
            assert_refused(seen.ask(gateway=gateway))


def test_batch_waits(fallback: Fallback) -> None:
    """Whatever is allowed, what may wait for the fleet does not go elsewhere."""
    fallback.use_dead()
    with nothing_leaves(fallback):
        assert_refused(fallback.seen_by_a("hosted_allowed").ask(service_tier="flex"))


def test_a_suspended_tenant(fallback: Fallback) -> None:
    """Allowed once is not allowed for ever."""
    fallback.use_dead()
    seen = fallback.seen_by("hosted_allowed")
    path = f"/admin/v1/tenants/{seen.system.tenant}"
    assert seen.system.admin("PATCH", path, {"suspended": True}).status == 200
    time.sleep(POLICY_IN_FORCE_S)
    with nothing_leaves(fallback):
        assert seen.ask().status == 401


@pytest.mark.parametrize("store", ["postgres", "redis"])
def test_a_store_that_hangs(fallback: Fallback, store: str) -> None:
    """Where the policy, or the lease, cannot be read any more nothing is sent, also for a tenant
    that was allowed."""
    fallback.use_dead()
    seen = fallback.seen_by_a("hosted_allowed")
    pid = fallback.system.ready["pids"][store]
    pids = servers.process_tree(pid) if store == "postgres" else [pid]
    for each in pids:
        os.kill(each, signal.SIGSTOP)
    try:
        # Nothing tells when a policy has grown too old to act on: only time does.
        time.sleep(2 * POLICY_IN_FORCE_S)
        with nothing_leaves(fallback):
            reply = seen.ask()
            assert reply.status == 503
    finally:
        for each in pids:
            os.kill(each, signal.SIGCONT)


def test_gateways_that_come_back(fallback: Fallback) -> None:
    """Killed and started again, with nothing in memory."""
    fallback.use_dead()
    seen = fallback.seen_by_a(None)
    before = fallback.system.ready["pids"]["gateways"]
    with nothing_leaves(fallback):
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                reply = seen.ask()
            except (OSError, http.client.HTTPException):
                continue
            assert_refused(reply)
            if not set(before) & set(fallback.system.ready["pids"]["gateways"]):
                break
        assert_refused(seen.ask())


def test_many_at_once_while_it_dies(fallback: Fallback) -> None:
    """Whatever state each request was in when the worker was killed."""
    seen = fallback.seen_by_a(None)
    with a_worker_of(fallback) as worker:
        replies: list[Reply] = []

        def ask(index: int) -> None:
            replies.append(seen.ask(stream=bool(index % 2), max_tokens=300, gateway=index))

        clients = [threading.Thread(target=ask, args=(index,)) for index in range(24)]
        with nothing_leaves(fallback):
            for index, client in enumerate(clients):
                client.start()
                if index == 12:
                    worker.process.kill()
            for client in clients:
                client.join()
        assert len(replies) == 24
        assert all(b"[DONE]" not in reply.raw for reply in replies)
        assert {reply.status for reply in replies} <= {200, 502, 503}
