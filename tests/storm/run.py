"""A storm from its seed to its verdict."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from storm.arena import LEASE_MS, Arena
from storm.check_books import check_books, check_rest
from storm.check_sequences import check_sequences, peak
from storm.check_spend import check_spend
from storm.check_window import check_requests, check_tokens, most_in_a_minute
from storm.generator import Generator
from storm.history import LOST, Finding, History
from storm.schedule import schedule
from storm.tenants import NATURAL_TOKENS, TENANTS, Mix
from weir_dev import WeirDev

WORKER_FLAGS = f"--natural-output-tokens {NATURAL_TOKENS}"
WINDOWS_WITHIN_S = 50.0
"""What began less than this ago is still in the windows, all of it."""
BUDGET = "insufficient_quota"
LATE_S_MAX = 5.0
LOSES_WITHIN_S = 2.0
REFUSED_SHARE_MIN = 0.4
REACHED_SHARE_MIN = 0.6


@dataclass(frozen=True)
class Plan:
    """What happens in a storm. Shares are of its length."""

    seed: int
    seconds: float
    tenants: Sequence[Mix] = TENANTS
    kills: Sequence[float] = (0.4,)
    edit: float = 0.65

    @property
    def name(self) -> str:
        """In the ids of its tenants."""
        return f"storm{self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    plan: Plan
    arena: Arena
    generator: Generator
    history: History
    midway: int
    """Things that held something in the middle: whether the look at rest can see at all."""

    @property
    def findings(self) -> list[Finding]:
        """All that must not be; nothing where every promise held."""
        history = self.history
        return [
            *check_sequences(history),
            *check_tokens(history),
            *check_requests(history),
            *check_spend(history),
            *check_books(history),
            *check_rest(history),
            *self._too_weak(),
        ]

    def _too_weak(self) -> list[Finding]:
        """A storm that did not reach the limits proves nothing."""
        found = []
        if self.generator.latest_s > LATE_S_MAX:
            what = f"was {self.generator.latest_s:.2f} s late"
            found.append(Finding("weak", "generator", what))
        if not self.midway:
            found.append(Finding("weak", "rest", "nothing was seen to be held in the middle"))
        if not any(row.outcome == LOST for row in self.history.rows):
            found.append(Finding("weak", "kill", "no request was lost with a gateway"))
        for mix in self.plan.tenants:
            tenant = self.arena.ids[mix.name]
            calls = [call for call in self.history.calls if call.tenant == tenant]
            refused = sum(call.status == 429 for call in calls)
            answered = sum(call.status is not None for call in calls)
            if refused < REFUSED_SHARE_MIN * answered:
                what = f"{refused} of {answered} answered were refused"
                found.append(Finding("weak", mix.name, what))
            if tenant in self.history.prices and not any(c.error == BUDGET for c in calls):
                found.append(Finding("weak", mix.name, "its budget was never reached"))
            limit = {**mix.limits, **mix.model_limits}.get("max_sequences")
            reached = peak(self.history, (tenant, "tenant"))
            if limit is not None and len(mix.limits) == 1 and reached < REACHED_SHARE_MIN * limit:
                found.append(Finding("weak", mix.name, f"{reached} of {limit} sequences at most"))
        return found

    def report(self) -> str:
        """What was asked, what came of it, how near the limits it came; the seed first."""
        history, plan = self.history, self.plan
        late_ms = round(self.generator.latest_s * 1000)
        lines = [f"WEIR_STORM_SEED={plan.seed} WEIR_STORM_SECONDS={plan.seconds:g}"]
        lines.append(
            f"{len(history.calls)} requests, {len(history.rows)} records, {len(history.spans)} "
            f"sequences; generator late by {late_ms} ms; kills {list(history.kills)}; "
            f"at rest after {history.rest.zero_after_ms} ms; "
            f"budgets {'on' if self.arena.has_budgets else 'off: there are no prices'}"
        )
        for mix in self.plan.tenants:
            tenant = self.arena.ids[mix.name]
            calls = [call for call in self.history.calls if call.tenant == tenant]
            seen = Counter(f"{call.status or ''} {call.error}".strip() for call in calls)
            rows = Counter(row.outcome for row in self.history.rows if row.tenant == tenant)
            scope = (tenant, "tenant")
            lines.append(
                f"{mix.name:9} {dict(mix.limits)} asked {len(calls)}, {dict(seen)}; "
                f"records {dict(rows)}; sequences at once {peak(self.history, scope)}, tokens in "
                f"a minute {most_in_a_minute(self.history, scope)}"
            )
        return "\n".join(lines)


async def storm(system: WeirDev, plan: Plan) -> Outcome:
    """Run it against a fresh system and gather what the witnesses saw."""
    arena = Arena(system, plan.tenants, plan.name)
    await asyncio.to_thread(arena.prepare)
    gateways = system.ready["gateways"]
    shots = schedule(plan.tenants, seed=plan.seed, seconds=plan.seconds, gateways=len(gateways))
    generator = Generator(gateways, system.model, arena.secrets, arena.ids)
    began_s = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(generator.run(shots))
        for share in plan.kills:
            tasks.create_task(_kill(arena, plan, generator, share))
        tasks.create_task(_edit(arena, plan))
        look = tasks.create_task(_look(arena, plan))
    history = await _gather(arena, generator, began_s)
    return Outcome(plan, arena, generator, history, look.result())


async def _kill(arena: Arena, plan: Plan, generator: Generator, share: float) -> None:
    """The gateway with the most answers under way, so that something is lost; never the one
    through which limits are edited."""
    await asyncio.sleep(plan.seconds * share)
    others = range(1, len(generator.gateways))
    deadline = time.monotonic() + LOSES_WITHIN_S
    while not any(generator.answering[each] for each in others):
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(0.005)
    busiest = max(others, key=lambda each: generator.answering[each])
    await asyncio.to_thread(arena.kill, busiest)


async def _edit(arena: Arena, plan: Plan) -> None:
    await asyncio.sleep(plan.seconds * plan.edit)
    await asyncio.to_thread(arena.edit)


async def _look(arena: Arena, plan: Plan) -> int:
    await asyncio.sleep(plan.seconds / 2)
    return len(await asyncio.to_thread(arena.held))


async def _gather(arena: Arena, generator: Generator, began_s: float) -> History:
    last_ms = max(call.ended_ms for call in generator.calls)
    rest = await asyncio.to_thread(arena.rest, last_ms)
    await asyncio.to_thread(arena.all_back)
    spans = await asyncio.to_thread(arena.spans)
    answered = {call.request_id for call in generator.calls if call.status == 200}
    expected = {span.request_id for span in spans} | {each for each in answered if each}
    rows = await arena.rows(expected)
    short = time.monotonic() - began_s < WINDOWS_WITHIN_S
    rest = await asyncio.to_thread(arena.counted, rest, rows, with_windows=short)
    return History(
        spans=spans,
        rows=rows,
        calls=generator.calls,
        sequences=arena.limits("max_sequences"),
        tokens=arena.limits("tpm"),
        requests=arena.limits("rpm"),
        budgets=arena.limits("budget"),
        prices=arena.prices,
        rest=rest,
        kills=tuple(arena.kills),
        lease_ms=LEASE_MS,
    )
