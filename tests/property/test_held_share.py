"""INV-2 and INV-3 while one gateway is cut off from the store and another goes on with it.

The store is admission's specification. The witness knows nothing of it: it has what ran when, and
until when each lease that ran was held by what reached the store.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from memory_ports import TTL_MS, MemoryLedger, StandingClock
from tenant_examples import a_key, a_tenant

from gateway.domain.admission import Demand, Granted, Renewed
from gateway.domain.tenant import Limits
from gateway.errors import WeirError
from gateway.serving import store_watch
from gateway.serving.authenticate import Caller
from gateway.serving.leases import Leases
from gateway.serving.ports import HeldLease, LedgerUnavailable
from gateway.serving.store_watch import StoreState

RENEW_MS = 2_500
MINUTE_MS = 60_000
Reply = TypeVar("Reply")


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes only where the test says so."""
    monkeypatch.setattr(store_watch, "MOMENT_S", 0.0)


@dataclass(eq=False)
class Run:
    """One request that ran, or still runs."""

    lease: HeldLease
    sequences: int
    most: int
    at_ms: int
    used: int = 0
    ran: bool = True
    running: bool = True


@dataclass
class Witness:
    """What reached the store of each lease, and whether any was held again."""

    clock: StandingClock
    counted_until_ms: dict[str, int] = field(default_factory=dict)
    retaken: bool = False

    def held(self, run: Run) -> bool:
        return self.counted_until_ms[run.lease.request_id] > self.clock.now_ms()

    def saw(self, request_id: str) -> None:
        self.counted_until_ms[request_id] = self.clock.now_ms() + TTL_MS


class Link:
    """One gateway's way to the store."""

    def __init__(self, ledger: MemoryLedger, witness: Witness) -> None:
        self._ledger = ledger
        self._witness = witness
        self.mode = "up"
        self.lost_replies = 0
        self.late: list[Callable[[], Awaitable[object]]] = []
        """Sent, and still on the way."""

    async def _through(self, call: Callable[[], Awaitable[Reply]]) -> Reply:
        if self.mode == "cut":
            raise LedgerUnavailable(ConnectionError)
        if self.mode == "late":
            self.late.append(call)
            raise LedgerUnavailable(TimeoutError)
        reply = await call()
        if self.mode == "deaf" or self.lost_replies:
            self.lost_replies = max(0, self.lost_replies - 1)
            raise LedgerUnavailable(TimeoutError)
        return reply

    async def deliver(self) -> None:
        """What was on the way arrives."""
        late, self.late = self.late, []
        for call in late:
            await call()

    async def acquire(
        self, tenant_id: str, key_id: str, model: str, demand: Demand, scopes: Any
    ) -> Any:
        async def call() -> Any:
            reply = await self._ledger.acquire(tenant_id, key_id, model, demand, scopes)
            if isinstance(reply, Granted):
                known = self._witness.counted_until_ms
                known.setdefault(demand.request_id, reply.now_ms + TTL_MS)
            return reply

        return await self._through(call)

    async def renew(self, tenant_id: str, leases: Sequence[HeldLease]) -> Renewed:
        async def call() -> Renewed:
            over = set(self._ledger.states[tenant_id].settled)
            renewed = await self._ledger.renew(tenant_id, leases)
            self._witness.retaken |= renewed.resumed + renewed.recreated > 0
            for lease in leases:
                if lease.request_id not in over:
                    self._witness.saw(lease.request_id)
            return renewed

        return await self._through(call)

    async def settle(self, lease: HeldLease, **actual: Any) -> Any:
        return await self._through(lambda: self._ledger.settle(lease, **actual))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)
        return lambda *given, **named: self._through(lambda: method(*given, **named))


class Partition(RuleBasedStateMachine):
    """Gateway 0 is cut off now and then, gateway 1 never."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = StandingClock()
        self.witness = Witness(self.clock)
        ledger = MemoryLedger(self.clock)
        self.ledger = ledger
        self.links = [Link(ledger, self.witness) for _ in range(2)]
        self.gateways = [
            Leases(link, self.clock, renew_ms=RENEW_MS, ttl_ms=TTL_MS, timeout_ms=1_000)
            for link in self.links
        ]
        self.running: list[list[Run]] = [[], []]
        self.runs: list[Run] = []
        self.asked = 0
        self.since_renewal_ms = 0

    def wait(self, work: Awaitable[Reply]) -> Reply:
        return self.loop.run_until_complete(asyncio.ensure_future(work, loop=self.loop))

    @initialize(
        sequences=st.integers(1, 4),
        tpm=st.integers(4, 24),
        rpm=st.one_of(st.none(), st.integers(2, 8)),
    )
    def limit(self, sequences: int, tpm: int, rpm: int | None) -> None:
        self.limits = Limits(max_sequences=sequences, tpm=tpm, rpm=rpm)
        self.caller = Caller(a_tenant(self.limits), a_key())

    @rule(at=st.integers(0, 1), sequences=st.integers(1, 2), tokens=st.integers(1, 12))
    def ask(self, at: int, sequences: int, tokens: int) -> None:
        self.asked += 1
        demand = Demand(f"{at}-{self.asked}", sequences, tokens, tokens)
        try:
            lease, _ = self.wait(
                self.gateways[at].acquire(self.caller, "m", demand, is_bounded=True)
            )
        except WeirError:
            return
        run = Run(lease, sequences, tokens, self.clock.now_ms())
        self.running[at].append(run)
        self.runs.append(run)
        assert self.witness.held(run), "admitted under a lease that the store does not count"
        assert self.sequences() <= self.limits.max_sequences or (  # type: ignore[operator]
            self.witness.retaken and self.gateways[at].watch.state is StoreState.AWAY
        )

    def sequences(self) -> int:
        """Running under leases that the store counts."""
        every = (run for runs in self.running for run in runs)
        return sum(run.sequences for run in every if self.witness.held(run))

    @precondition(lambda self: any(self.running))
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        at = data.draw(st.sampled_from([at for at in (0, 1) if self.running[at]]))
        run = data.draw(st.sampled_from(self.running[at]))
        ran = data.draw(st.booleans())
        self.finish(at, run, used=data.draw(st.integers(0, run.most)) if ran else 0, ran=ran)

    def finish(self, at: int, run: Run, *, used: int, ran: bool) -> None:
        self.running[at].remove(run)
        run.used, run.ran, run.running = used, ran, False
        self.wait(self.gateways[at].settle(run.lease, actual_tokens=used, ran=ran))

    @rule(ms=st.sampled_from([1, 400, 2_500, 5_000, 9_000, 20_000, 45_000]))
    def pass_time(self, ms: int) -> None:
        """Both renew in time, as far as they can."""
        while ms:
            step_ms = min(ms, RENEW_MS - self.since_renewal_ms)
            self.clock.advance(step_ms)
            ms -= step_ms
            self.since_renewal_ms += step_ms
            if self.since_renewal_ms == RENEW_MS:
                self.since_renewal_ms = 0
                for gateway in self.gateways:
                    self.wait(self.turn(gateway))

    async def turn(self, gateway: Leases) -> None:
        """One turn of the loops behind the requests."""
        if gateway.watch.state is StoreState.AWAY:
            await gateway.watch._look_for_it()
        elif gateway.watch.is_open:
            for work in (gateway._held.renew_all, gateway._settlements.send_all):
                try:
                    await work()
                except LedgerUnavailable:
                    return

    @rule(mode=st.sampled_from(["up", "cut", "deaf", "late"]))
    def change(self, mode: str) -> None:
        self.links[0].mode = mode

    @rule(at=st.integers(0, 1))
    def lose_a_reply(self, at: int) -> None:
        self.links[at].lost_replies = 1

    @rule()
    def notice(self) -> None:
        """The ping of an idle store."""
        self.wait(self.gateways[0].watch.lives())

    @rule()
    def deliver(self) -> None:
        self.wait(self.links[0].deliver())

    @rule()
    def heal(self) -> None:
        self.links[0].mode = "up"
        self.wait(self.links[0].deliver())
        self.wait(self.turn(self.gateways[0]))

    @invariant()
    def no_trailing_minute_passes_a_limit(self) -> None:
        if not hasattr(self, "limits"):
            return
        for last in self.runs:
            minute = [run for run in self.runs if last.at_ms - MINUTE_MS < run.at_ms <= last.at_ms]
            assert sum(run.used for run in minute) <= self.limits.tpm  # type: ignore[operator]
            if self.limits.rpm is not None:
                assert sum(run.ran for run in minute if not run.running) <= self.limits.rpm

    def teardown(self) -> None:
        """INV-1: healed, ended and settled, nothing is left."""
        self.links[1].lost_replies = self.links[0].lost_replies = 0
        self.heal()
        for at, runs in enumerate(self.running):
            for run in runs[:]:
                self.finish(at, run, used=run.most, ran=True)
        for gateway in self.gateways:
            self.wait(self.turn(gateway))
            assert (gateway.held, gateway.unsettled) == (0, 0)
        self.no_trailing_minute_passes_a_limit()
        assert self.ledger.states["acme"].leases == {}
        self.loop.close()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    age_ms=st.integers(0, 60_000),
    unheard=st.integers(0, 2),
    wait_ms=st.integers(0, 2 * TTL_MS),
    tokens=st.tuples(st.integers(0, 10), st.integers(1, 10)),
    rpm=st.booleans(),
    heal_at=st.integers(0, 9),
)
@example(age_ms=47_500, unheard=0, wait_ms=9_000, tokens=(0, 10), rpm=True, heal_at=9)
@example(age_ms=50_000, unheard=1, wait_ms=4_000, tokens=(0, 10), rpm=False, heal_at=9)
@example(age_ms=30_000, unheard=0, wait_ms=4_000, tokens=(0, 10), rpm=False, heal_at=0)
@example(age_ms=1_000, unheard=0, wait_ms=10_500, tokens=(0, 10), rpm=False, heal_at=9)
@example(age_ms=1_000, unheard=0, wait_ms=1_000, tokens=(5, 10), rpm=False, heal_at=0)
@example(age_ms=1_000, unheard=0, wait_ms=1_000, tokens=(5, 5), rpm=True, heal_at=0)
def test_a_place_of_any_age(
    *, age_ms: int, unheard: int, wait_ms: int, tokens: tuple[int, int], rpm: bool, heal_at: int
) -> None:
    """One lease takes the whole minute's tokens; its place may be taken over at some age of it;
    from then on the gateway with the store asks for the same all the time."""
    both = Partition()
    both.limit(sequences=9, tpm=10, rpm=1 if rpm else None)
    both.ask(at=0, sequences=1, tokens=10)
    both.pass_time(age_ms)
    for _ in range(unheard):
        both.links[0].lost_replies = 1
        both.wait(both.turn(both.gateways[0]))
    both.change("cut")
    both.notice()
    (first,) = both.running[0]
    both.finish(0, first, used=tokens[0], ran=tokens[0] > 0)
    both.pass_time(wait_ms)
    both.ask(at=0, sequences=1, tokens=tokens[1])
    for turn in range(36):
        if turn == heal_at:
            both.heal()
        both.pass_time(2_000)
        both.ask(at=1, sequences=1, tokens=10)
        for at in (0, 1):
            for run in both.running[at][:]:
                both.finish(at, run, used=run.most, ran=True)
        both.no_trailing_minute_passes_a_limit()
    both.teardown()


Partition.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestPartition = Partition.TestCase
