"""Drives the specification and a real store side by side with the same operations, and compares
every reply and everything that is kept."""

import asyncio
import copy
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar
from uuid import uuid4

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from ledger_draws import (
    BURST,
    DEMAND,
    LIMITS,
    MONTH,
    MONTHS,
    PICO,
    SCOPES,
    SETTLEMENT,
    WHERE,
    Drawn,
    scope_names,
)
from ledger_dump import kept_by_ledger, kept_by_specification, lose
from memory_ports import specified

from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import RedisClient
from gateway.domain import admission
from gateway.domain.admission import Beginning, Demand, Granted, TenantState, Unborn
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import HeldLease

START_MS = 1_800_000_000_000
TTL_MS = 10_000
Reply = TypeVar("Reply")
_RUN = uuid4().hex
_tenants = itertools.count()


class LedgerParity(RuleBasedStateMachine):
    """On one clock that may jump. `connect` gives a client of the store, `flush_scripts` makes its
    servers forget every script, `loop` is where both run."""

    connect: Callable[[], RedisClient]
    flush_scripts: Callable[[RedisClient], Awaitable[None]]
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.tenant = f"{_RUN}-{next(_tenants)}"
        self.now_ms = START_MS
        self.birth_ms = 0
        self.version = 0
        self.counter = 0
        self.state = TenantState(beginning=None)
        self.limits: dict[str, list[ScopeLimits]] = {}
        self.held: dict[str, HeldLease] = {}
        self.begun: dict[str, int] = {}
        self.redis = type(self).connect()
        self.ledger = RedisLedger(
            self.redis, ttl_ms=TTL_MS, timeout_ms=5000, births=self, clock_ms=lambda: self.now_ms
        )

    async def born_ms(self, tenant_id: str) -> int:
        return self.birth_ms

    def wait(self, call: Awaitable[Reply]) -> Reply:
        return self.loop.run_until_complete(_awaited(call))

    def specified(self, operation: Callable[..., Reply], *args: Any, **named: Any) -> Reply:
        """What the specification answers, the tenant begun first where it is not."""
        try:
            return operation(self.state, *args, now_ms=self.now_ms, **named)
        except Unborn:
            born_ms = self.birth_ms
            beginning = Beginning(born_ms + TTL_MS, born_ms + 61_000) if born_ms else Beginning()
            admission.begin(self.state, beginning)
            return operation(self.state, *args, now_ms=self.now_ms, **named)

    def offered(self, key: str, model: str, stale: bool) -> tuple[ScopeLimits, ...]:
        result = []
        for name in scope_names(key, model):
            known = self.limits.get(name) or [ScopeLimits(name, 0, None, None, None)]
            result.append(known[0] if stale else known[-1])
        return tuple(result)

    @initialize(limits=LIMITS, is_tracked=st.booleans())
    def begin(self, limits: tuple[Any, ...], is_tracked: bool) -> None:
        self.change_limits("tenant", *limits)
        if is_tracked:
            self.month_begins(MONTHS[1])
            self.month_is_finished(MONTHS[1], {"tenant": 1}, True)

    @rule(scope=SCOPES, limits=LIMITS)
    def limits_change(self, scope: str, limits: tuple[Any, ...]) -> None:
        self.change_limits(scope, *limits)

    def change_limits(self, scope: str, *limits: int | None) -> None:
        self.version += 1
        first = ScopeLimits(scope, 0, None, None, None)
        self.limits.setdefault(scope, [first]).append(ScopeLimits(scope, self.version, *limits))

    @rule(where=WHERE, burst=BURST, stale=st.booleans(), month=MONTH)
    def acquire(self, where: tuple[str, str], burst: list[Drawn], stale: bool, month: str) -> None:
        self.acquire_burst(where, burst, stale, month)

    def acquire_burst(
        self, where: tuple[str, str], burst: list[Drawn], stale: bool, month: str
    ) -> None:
        for drawn in burst:
            self.counter += 1
            self.acquire_one(f"{self.counter:032x}", where, drawn, stale, month)

    @precondition(lambda self: self.held)
    @rule(drawn=DEMAND, month=MONTH)
    def acquire_again(self, drawn: Drawn, month: str) -> None:
        """A repeated acquisition, of a live, lapsed, settled or forgotten request."""
        rid = max(self.held)
        self.acquire_one(rid, (self.held[rid].key_id, self.held[rid].model), drawn, False, month)

    def acquire_one(
        self, rid: str, where: tuple[str, str], drawn: Drawn, stale: bool, month: str
    ) -> None:
        sequences, prompt, output, maximum, cost = drawn
        tokens = prompt + output
        demand = Demand(rid, sequences, tokens, tokens if maximum else prompt + 1, cost, month)
        scopes = self.offered(*where, stale)
        before = copy.deepcopy(self.state)
        expected = self.specified(admission.acquire, demand, scopes, ttl_ms=TTL_MS)
        got = self.wait(self.ledger.acquire(self.tenant, *where, demand, scopes))
        assert got == expected
        if isinstance(got, Granted):
            self.held[rid] = HeldLease(
                rid, self.tenant, *where, sequences, got.reserved_tokens, got.second,
                scope_names(*where), cost, month,
            )  # fmt: skip
        elif before.beginning is not None:
            # INV-4: as if it had only been looked at.
            admission.observe(before, scopes, now_ms=self.now_ms)
            if before != self.state:
                admission.set_right(before, now_ms=self.now_ms, ttl_ms=TTL_MS)
            assert before == self.state

    @rule(**SETTLEMENT, carried=st.booleans(), keep=st.booleans())
    def settle(
        self,
        pick: int,
        used: tuple[int, int, bool],
        base: tuple[int, int],
        carried: bool,
        keep: bool,
    ) -> None:
        self.settle_one(pick, used, base, carried=carried, keep=keep)

    def settle_one(
        self,
        pick: int,
        used: tuple[int, int, bool],
        base: tuple[int, int],
        *,
        carried: bool,
        keep: bool,
    ) -> None:
        if not self.held:
            return
        rid = sorted(self.held)[pick % len(self.held)]
        tokens, cost, ran = used
        lease = replace(
            self.held[rid], carried=carried, base_tokens=base[0], base_cost_pico=base[1]
        )
        expected = self.specified(
            admission.settle,
            rid,
            actual_tokens=tokens + base[0],
            ran=ran or base[0] > 0,
            actual_cost_pico=cost + base[1],
            held=specified(lease),
        )
        got = self.wait(
            self.ledger.settle(lease, actual_tokens=tokens, ran=ran, actual_cost_pico=cost)
        )
        assert got == expected
        if not keep:
            del self.held[rid]

    @rule(pick=st.sets(st.integers(0, 5)), carried=st.sets(st.integers(0, 5)))
    def renew(self, pick: set[int], carried: set[int]) -> None:
        chosen = [
            replace(self.held[rid], carried=i in carried)
            for i, rid in enumerate(sorted(self.held))
            if i in pick
        ]
        if chosen:
            leases = {lease.request_id: specified(lease) for lease in chosen}
            expected = self.specified(admission.renew, leases, ttl_ms=TTL_MS)
            assert self.wait(self.ledger.renew(self.tenant, chosen)) == expected

    @rule(where=WHERE, stale=st.booleans(), month=MONTH)
    def observe(self, where: tuple[str, str], stale: bool, month: str) -> None:
        scopes = self.offered(*where, stale)
        expected = self.specified(admission.observe, scopes, month=month)
        assert self.wait(self.ledger.observe(self.tenant, scopes, month)) == expected

    @rule(
        step=st.sampled_from(["begin", "finish", "finish", "unsettled"]),
        month=st.sampled_from([MONTHS[1], MONTHS[1], *filter(None, MONTHS)]),
        again=st.booleans(),
        spent=st.dictionaries(SCOPES, PICO, max_size=4),
        is_right=st.sampled_from([True, True, True, False]),
    )
    def month(
        self, step: str, month: str, again: bool, spent: dict[str, int], is_right: bool
    ) -> None:
        """One step of summing up a month; whoever does it may stop after any of them."""
        if step == "begin":
            self.month_begins(month, again)
        elif step == "finish":
            self.month_is_finished(month, spent, is_right)
        else:
            expected = self.specified(admission.unsettled_or_recent)
            assert self.wait(self.ledger.unsettled_or_recent(self.tenant)) == expected

    def month_begins(self, month: str, again: bool = False) -> None:
        expected = self.specified(admission.begin_month, month, again=again)
        assert self.wait(self.ledger.begin_month(self.tenant, month, again=again)) == expected
        if expected is not None:
            self.begun[month] = expected.at_ms

    def month_is_finished(self, month: str, spent: dict[str, int], is_right: bool) -> None:
        at_ms = self.begun.get(month, 1) + (not is_right)
        expected = self.specified(admission.finish_month, month, at_ms, spent)
        got = self.wait(self.ledger.finish_month(self.tenant, month, at_ms, spent))
        assert got == expected

    @rule(
        what=st.sampled_from(["lost", "idle", "flushed", "flushed", "an hour", "begin again"]),
        ago_ms=st.integers(0, 3_000),
    )
    def something_rare(self, what: str, ago_ms: int) -> None:
        """The store comes back empty; nobody came for hours; scripts are flushed; an hour passes;
        a month is begun again."""
        if what == "lost":
            self.birth_ms = max(1, self.now_ms - ago_ms)
            self.wait(lose(self.redis, self.tenant, with_money=True))
            self.state = TenantState(beginning=None)
        elif what == "idle":
            self.wait(lose(self.redis, self.tenant, with_money=False))
            self.state = TenantState(beginning=None, months=self.state.months)
        elif what == "flushed":
            self.wait(type(self).flush_scripts(self.redis))
        elif what == "an hour":
            self.now_ms += 3_700_000
        else:
            self.now_ms += 3_000
            self.month_begins(MONTHS[1])

    @rule(where=WHERE, burst=BURST, month=MONTH)
    def acquire_more(self, where: tuple[str, str], burst: list[Drawn], month: str) -> None:
        self.acquire_burst(where, burst, False, month)

    @rule(**SETTLEMENT)
    def settle_more(self, pick: int, used: tuple[int, int, bool], base: tuple[int, int]) -> None:
        self.settle_one(pick, used, base, carried=False, keep=False)

    @rule()
    def every_lease_lapses(self) -> None:
        self.now_ms += TTL_MS

    @rule(ms=st.one_of(st.integers(0, 3000), st.integers(3000, 70_000)))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(ms=st.one_of(st.integers(1, 6000), st.integers(6000, 600_000)))
    def clock_steps_back(self, ms: int) -> None:
        self.now_ms -= ms

    @rule(
        back_ms=st.integers(50_000, 4_000_000),
        look=st.sampled_from(["acquire", "renew", "observe"]),
        where=WHERE,
        drawn=DEMAND,
    )
    def one_look_at_a_wrong_time(
        self, back_ms: int, look: str, where: tuple[str, str], drawn: Drawn
    ) -> None:
        """The clock steps back and returns."""
        self.now_ms -= back_ms
        if look == "acquire":
            self.acquire_burst(where, [drawn] * 3, False, MONTHS[1])
        elif look == "renew":
            self.renew({0, 1}, set())
        else:
            self.observe(where, False, MONTHS[1])
        self.both_keep_the_same()
        self.now_ms += back_ms + 1_000

    @invariant()
    def both_keep_the_same(self) -> None:
        """INV-1 to INV-4: what is held, charged, reserved and spent, and until when."""
        kept = self.wait(kept_by_ledger(self.redis, self.tenant, self.now_ms))
        if self.state.beginning is not None:
            assert kept == kept_by_specification(self.state, self.now_ms)

    def teardown(self) -> None:
        self.wait(self.redis.aclose())


def run_parity(
    connect: Callable[[], RedisClient],
    flush_scripts: Callable[[RedisClient], Awaitable[None]],
    *,
    examples: int,
) -> None:
    """Run the machine against a store, always with the same random choices."""

    class Parity(LedgerParity):
        loop = asyncio.new_event_loop()

    Parity.connect = staticmethod(connect)
    Parity.flush_scripts = staticmethod(flush_scripts)
    try:
        run_state_machine_as_test(
            Parity,
            settings=settings(
                max_examples=examples,
                phases=[Phase.generate],
                stateful_step_count=40,
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        Parity.loop.close()


async def _awaited(call: Awaitable[Reply]) -> Reply:
    return await call
