"""Failures provoked on a real system, and what an SDK must make of them."""

import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from sdk.seen import Call, Caller, Json, Seen
from sdk.systems import call, fault, key_with, new_model, worker_of
from weir_dev import WeirDev

Provoke = Callable[[WeirDev], AbstractContextManager[Call]]
SHOWN_WITHIN_S = 3.0
BACK_WITHIN_S = 5.0
STREAM: Json = {"stream": True, "max_tokens": 64}


@dataclass(frozen=True)
class Failure:
    """A status and how it comes about. Within `provoke` the call that it yields fails so."""

    name: str
    provoke: Provoke
    status: int
    kind: str
    """`error.type`."""
    code: str
    raised: str
    """The SDKs' class."""
    param: str | None = None
    waits: bool = False
    """It says when to try again."""


CLASSES_ELSEWHERE = {413: ("APIStatusError", "APIError")}
"""Where the SDKs have no class of the status: Python's, Node's."""


def asks(**fields: Any) -> Provoke:
    """The request itself is what is wrong."""

    @contextmanager
    def provoke(system: WeirDev) -> Iterator[Call]:
        yield call(system, **fields)

    return provoke


def limited(used: int = 0, **limits: Any) -> Provoke:
    """The tenant's own limit is met, after so many requests."""

    @contextmanager
    def provoke(system: WeirDev) -> Iterator[Call]:
        system.set_limits(**limits)
        for _ in range(used):
            assert system.chat(max_tokens=8).status == 200
        yield call(system)

    return provoke


def faulty(kind: str, *, after_tokens: int = 0, **fields: Any) -> Provoke:
    """The worker fails in this way, without another to try: each attempt does."""

    @contextmanager
    def provoke(system: WeirDev) -> Iterator[Call]:
        with fault(system, kind=kind, after_tokens=after_tokens, count=None):
            yield call(system, **fields)

    return provoke


@contextmanager
def sequence_taken(system: WeirDev) -> Iterator[Call]:
    """The tenant's one place is taken by a stream."""
    system.set_limits(max_sequences=1)
    with system.open_chat(max_tokens=2000, stream=True) as stream:
        assert stream.recv(1024)
        yield call(system)


@contextmanager
def wrong_key(system: WeirDev) -> Iterator[Call]:
    """A key that nobody has."""
    yield call(system, key="sk-weir-wrong")


@contextmanager
def key_of_another_model(system: WeirDev) -> Iterator[Call]:
    """A key whose models do not cover the one asked for."""
    yield _once_known(system, key_with(system, models=[new_model(system)]))


@contextmanager
def key_of_another_network(system: WeirDev) -> Iterator[Call]:
    """A key that is good elsewhere."""
    yield _once_known(system, key_with(system, ip_allow=["192.0.2.0/24"]))


def _once_known(system: WeirDev, key: str) -> Call:
    """A call with a new key, when the gateway has heard of it."""
    return once(system, lambda: system.chat(token=key).status != 401, call(system, key=key))


def once(system: WeirDev, holds: Callable[[], bool], ready: Call) -> Call:
    """The call, when it holds."""
    deadline = time.monotonic() + SHOWN_WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, f"{system.gateway()} never came to it"
    return ready


@contextmanager
def no_worker(system: WeirDev) -> Iterator[Call]:
    """A model that nobody serves, asked for by a tenant whose requests do not wait for a worker."""
    system.set_limits()
    model = new_model(system)
    yield once(system, lambda: system.chat(model=model).status == 503, call(system, model=model))


@contextmanager
def worker_killed(system: WeirDev) -> Iterator[Call]:
    """The only worker's process dies in the middle of the answer."""
    model = new_model(system)
    with worker_of(system, model) as worker:
        body = {"kind": "die", "after_tokens": 3}
        asked = call(system, model=model, **STREAM)
        ready = once(system, lambda: system.chat(model=model, max_tokens=1).status == 200, asked)
        assert system.request("POST", worker.url + "/weir/faults", body).status == 200
        yield ready
        assert worker.process.wait(10) == -signal.SIGKILL


@contextmanager
def redis_stopped(system: WeirDev) -> Iterator[Call]:
    """Redis does not answer. Afterwards every gateway has found that it does again."""
    pid = system.ready["pids"]["redis"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield call(system)
    finally:
        os.kill(pid, signal.SIGCONT)
        for index in range(len(system.ready["gateways"])):
            until = time.monotonic() + BACK_WITHIN_S
            while system.chat(gateway=index, max_tokens=1).status != 200:
                assert time.monotonic() < until, "Redis answers, and a gateway refuses"


def assert_raised(failure: Failure, seen: Seen) -> None:
    """The SDK raised its own class, with everything that the contract says of the status."""
    error = seen.error
    assert error is not None, "nothing was raised"
    classes = CLASSES_ELSEWHERE.get(failure.status, (failure.raised,))
    assert error["class"] in classes, error
    assert "APIError" in error["classes"]
    said = (error["status"] or 0, error["type"], error["code"], error["param"])
    assert said == (failure.status, failure.kind, failure.code, failure.param), error
    assert error["message"]


def assert_status(failure: Failure, system: WeirDev, caller: Caller) -> None:
    """Provoke it: the SDK's exception, and nothing of an answer."""
    with failure.provoke(system) as asked:
        seen = caller(asked)
    assert seen.answers == []
    assert_raised(failure, seen)
    assert seen.error is not None
    assert len(seen.error["request_id"]) == 36
    assert_waits(seen) if failure.waits else assert_no_wait(seen)


def assert_waits(seen: Seen) -> float:
    """S19, S20: both headers, at most a minute. Returns the seconds."""
    wait_ms = int(seen.headers["retry-after-ms"])
    assert 1 <= wait_ms <= 60_000
    assert int(seen.headers["retry-after"]) == math.ceil(wait_ms / 1000)
    return wait_ms / 1000


def assert_no_wait(seen: Seen) -> None:
    """Waiting would not help, or nobody knows how long."""
    assert "retry-after" not in seen.headers
    assert "retry-after-ms" not in seen.headers


def assert_event(failure: Failure, system: WeirDev, caller: Caller) -> None:
    """Provoke it: chunks, then the SDK's exception, and no finish reason that hides it."""
    with failure.provoke(system) as asked:
        seen = caller(asked)
    assert seen.text()
    assert seen.finish() is None
    assert_raised(failure, seen)
