"""Redis is slow, hangs, refuses, is gone or stopped: what is decided, by when, and what heals."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from breakable_store import Store
from redis_faults import (
    CUT_OFF,
    DECISION_S,
    RENEW_MS,
    TTL_MS,
    WITH_STORE,
    Stream,
    Timed,
    TwoGateways,
    of_a_new_tenant,
)
from sequence_witness import crowds
from starvation import Control, control_of_gateway

pytestmark = [pytest.mark.fault, pytest.mark.timeout(240)]
HEALED_S = 3.0
NOTICED_S = 1.0
RESTED_S = 5.0
LIMIT = 2
TAKERS = 2
ROUNDS = 4


@dataclass(frozen=True)
class Fault:
    """Something that happens to Redis, and its end."""

    name: str
    begin: Callable[[Store], None]
    end: Callable[[Store], None]
    only_cut_off: bool = True
    """Whether the other gateway goes on with the store."""


def refuse_scripts(store: Store) -> None:
    with store.client() as client:
        client.acl_setuser("default", enabled=True, categories=["-@scripting"])


def take_scripts(store: Store) -> None:
    with store.client() as client:
        client.acl_setuser("default", enabled=True, categories=["+@all"])


def heal(store: Store) -> None:
    store.proxy.heal()


FAULTS = [
    Fault("delayed by a second", lambda store: store.proxy.delay(1.0), heal),
    Fault("hanging", lambda store: store.proxy.hang(), heal),
    Fault("gone", lambda store: store.proxy.refuse(), heal),
    Fault("refusing scripts", refuse_scripts, take_scripts, only_cut_off=False),
    Fault(
        "stopped",
        lambda store: store.process.send_signal(signal.SIGSTOP),
        lambda store: store.process.send_signal(signal.SIGCONT),
        only_cut_off=False,
    ),
    Fault("killed", Store.kill, Store.start, only_cut_off=False),
]


@pytest.fixture(params=FAULTS, ids=lambda fault: fault.name)
def fault(request: pytest.FixtureRequest, gateways: TwoGateways) -> Iterator[Fault]:
    """Ended after the test, also where that failed."""
    chosen: Fault = request.param
    yield chosen
    if gateways.store.process.poll() is not None:
        gateways.store.start()
    gateways.store.process.send_signal(signal.SIGCONT)
    take_scripts(gateways.store)
    gateways.store.proxy.heal()


@pytest.fixture
def control(gateways: TwoGateways) -> Iterator[Control]:
    """How long the gateway that is cut off got no core."""
    with control_of_gateway(gateways.gateway(CUT_OFF)) as asking:
        yield asking


def until(
    holds: Callable[[], bool], what: str, control: Control, within_s: float = HEALED_S
) -> float:
    """How long it took, within a deadline; what the gateway got no core for is not counted."""
    began = time.monotonic()
    while not holds():
        waited_s = time.monotonic() - began
        assert waited_s - control.lost_s(began) < within_s, f"{what} took over {within_s} s"
        time.sleep(0.01)
    return time.monotonic() - began


def assert_decided_in_time(decided: list[Timed], control: Control) -> None:
    """M19, M20: three times the promise, whatever the answer was. Half of them at least without an
    excuse of the machine's."""
    for each in decided:
        lost_s = control.lost_s(each.began, each.ended)
        assert each.took_s - lost_s < 3 * DECISION_S, (each.took_s, lost_s, each.outcome)
    in_time = [each for each in decided if each.took_s < 3 * DECISION_S]
    assert len(in_time) * 2 > len(decided), [each.took_s for each in decided]
    assert {each.outcome for each in decided} <= {"200", "admission_unavailable"}


def at_rest(system: TwoGateways) -> bool:
    """Nothing is held, owed or broken."""
    shown = system.limits().get("tenant")  # 503: not known yet
    return (
        shown is not None
        and shown["sequences_running"] == 0
        and all(system.words(gateway)[0] == 200 for gateway in (CUT_OFF, WITH_STORE))
        and system.metric("weir_unsettled_leases") == 0
    )


def test_decisions_stay_quick_streams_go_on_and_it_heals(
    gateways: TwoGateways, fault: Fault, control: Control
) -> None:
    """DESIGN 10, R11, M19, M20: 503 within a decision's time, from the first request on; a word and
    a metric say so; what streams ends whole; nothing that is held is forgotten or kept."""
    system = of_a_new_tenant(gateways, max_sequences=LIMIT)
    cursor = system.ledger_end
    (stream,) = system.streams(1, max_tokens=120)
    fault.begin(system.store)
    with ThreadPoolExecutor(8) as pool:
        decided = list(pool.map(lambda _: system.timed(), range(8)))
    until(lambda: "redis" in system.words()[1], "the word", control, NOTICED_S)
    assert system.words()[0] == 503
    assert system.metric("weir_store_state") == 3
    decided += [system.timed() for _ in range(20)]
    assert_decided_in_time(decided, control)
    quick = sorted(each.took_s - control.lost_s(each.began, each.ended) for each in decided[8:])
    assert quick[len(quick) // 2] < DECISION_S / 2, "known to be away, a decision is instant"
    stream.grows()
    fault.end(system.store)
    took_s = until(lambda: system.words()[0] == 200, "ready again", control)
    system.served()
    assert stream.ended().endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    until(lambda: at_rest(system), "rest", control, RESTED_S)
    system.assert_never_more(LIMIT, cursor)
    slowest_s, median_ms = max(each.took_s for each in decided), quick[len(quick) // 2] * 1000
    print(f"{fault.name}: at most {slowest_s:.3f} s, then {median_ms:.1f} ms, back {took_s:.2f} s")  # noqa: T201


@contextmanager
def taking_all(system: TwoGateways) -> Iterator[Counter[str]]:
    """The gateway with the store takes every place that it can get; its outcomes."""
    outcomes: Counter[str] = Counter()
    over = threading.Event()

    def take() -> None:
        while not over.is_set():
            outcomes[system.timed(WITH_STORE, max_tokens=8).outcome] += 1
            time.sleep(0.005)

    with ThreadPoolExecutor(TAKERS) as pool:
        takers = [pool.submit(take) for _ in range(TAKERS)]
        try:
            yield outcomes
        finally:
            over.set()
    for taker in takers:
        taker.result()


def used_again(system: TwoGateways, until_at: float) -> list[Timed]:
    """What ran in the place of the one that left, up to the first that was refused after it."""
    ran: list[Timed] = []
    while (asked := system.timed()).outcome == "200" or (not ran and asked.ended < until_at):
        if asked.outcome == "200":
            ran.append(asked)
            time.sleep(0.1)
    return ran


def test_what_was_held_is_used_again_and_never_more(
    gateways: TwoGateways, fault: Fault, control: Control
) -> None:
    """DESIGN 10, INV-2: while the first gateway is cut off a request runs in the place of one that
    ended, for one lease time; the worker never sees more than the limit, though another gateway
    with the store takes what it can all the while. Where the machine stood still for half of that
    time there was nothing to see: then once more."""
    for _ in range(ROUNDS):
        if held_share_is_exact(gateways, fault, control):
            return
    pytest.fail("the machine stood still for half a lease time in every round")


def held_share_is_exact(gateways: TwoGateways, fault: Fault, control: Control) -> bool:
    """One round. What holds on any machine is always asserted; False where times say nothing."""
    system = of_a_new_tenant(gateways, max_sequences=LIMIT)
    cursor = system.ledger_end
    (stream,) = system.streams(1, max_tokens=600)
    lapses_ms = system.lapses_ms()
    with taking_all(system) as outcomes:
        try:
            began = time.monotonic()
            fault.begin(system.store)
            until(lambda: system.metric("weir_store_state") == 3, "the loss", control, NOTICED_S)
            lost_at = time.monotonic()
            # Nothing is sent to it from now on: no lease is confirmed later than this.
            held_until = lost_at + TTL_MS / 1000
            assert system.timed().outcome == "admission_unavailable", "its place is still taken"
            stream.leave()
            ran = used_again(system, held_until)
            used_up_at = time.monotonic()
        finally:
            fault.end(system.store)
    lost_s = control.lost_s(began - 2 * RENEW_MS / 1000, used_up_at)
    until(lambda: at_rest(system), "rest", control, RESTED_S)
    assert all(each.began < held_until for each in ran), "used after it had lapsed"
    assert_only_what_was_held_beside_the_limit(system, cursor, stream, lapses_ms)
    if fault.only_cut_off:
        assert outcomes["200"] > 0
    assert system.metric("weir_admission_decision_seconds_count") > 0
    if lost_s > TTL_MS / 2000:
        return False
    assert ran, f"the place of the one that left was not used again; {lost_s:.3f} s were lost"
    assert ran[-1].ended - began + lost_s > TTL_MS / 2000
    assert used_up_at - lost_at - lost_s < TTL_MS / 1000 + 3 * DECISION_S
    return True


def assert_only_what_was_held_beside_the_limit(
    system: TwoGateways, cursor: int, stream: Stream, lapses_ms: int
) -> None:
    """INV-2. Until the lease lapses the limit holds over both gateways. What was begun under it
    may outlive it: from then on others hold its place, and the excess is what the gateway that is
    cut off held, one sequence. (No metric shows that one: it ends before the store is told of it.
    `weir_excess_sequences` shows what still runs when the gateway is back.) As ever, an engine that
    goes on for longer than an abort is waited for is not the limit's fault."""
    ran = system.ran(cursor)
    late = stream.ended_late(ran)
    for at_ms, together in crowds(ran):
        counted = [each for each in together if not late or each.request_id != stream.request_id]
        mine = [each for each in counted if each.gateway == CUT_OFF]
        message = system.told(ran, too_many=at_ms, lapses=lapses_ms, left=stream.left_ms or 0)
        assert len(mine) <= 1, message
        assert len(counted) - len(mine) <= LIMIT, message
        assert at_ms >= lapses_ms or len(counted) <= LIMIT, message
