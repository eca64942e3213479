"""How well interactive requests fare beside batch through a real gateway, over HTTP, in real time:
the schedule of `virtual_goodput`, one gateway process, one simulated replica."""

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from queue_http_system import new_tenant, until_limits
from virtual_goodput import TARGETS, Load, requests
from weir_dev import WeirDev, weir_dev

from backend.loadtest.chat_body import chat_bodies
from backend.loadtest.http_target import HttpTarget
from backend.loadtest.measure import good, met_tpot, met_ttft, tpot_ms, ttft_ms
from backend.loadtest.percentiles import nearest_rank
from backend.loadtest.plan import Workload
from backend.loadtest.prompts import PromptText
from backend.loadtest.run import Outcome, Run, TargetFacts

DRAINED_S = 25.0
"""After the last request was sent; by then interactive has ended."""
NOTED_EVERY_S = 10.0
CEILING = "weir_queue_ceiling_batch_sequences{"
FLAGS = "--radix-eviction-policy slru --stream-interval {interval}"


@dataclass(frozen=True, slots=True)
class Processor:
    """What processes have had of the cores, and how long they waited for one, in seconds."""

    used_s: float
    waited_s: float

    @classmethod
    def of(cls, pid: int) -> "Processor":
        """So far, its main thread."""
        used_ns, waited_ns, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
        return cls(int(used_ns) / 1e9, int(waited_ns) / 1e9)

    def since(self, before: "Processor") -> "Processor":
        """What came after."""
        return Processor(self.used_s - before.used_s, self.waited_s - before.waited_s)


@dataclass(frozen=True, slots=True)
class HttpFigures:
    """One run. Shares are of the interactive requests sent in the window."""

    sent: int
    goodput: float
    ttft_met: float
    tpot_met: float
    ttft_p95_ms: float
    tpot_p95_ms: float
    batch_tokens_per_s: float
    ended_otherwise: int
    """Interactive requests that did not end whole."""
    ends: dict[str, int]
    """How interactive requests ended, with the error's code."""
    gateway: Processor
    worker: Processor
    generator_lag_p99_ms: float
    step_lag_p95_ms: float
    """How late the replica's steps ended: what the machine took, not the queue."""
    ceilings: tuple[int, ...]
    """Where batch stopped, every ten seconds."""


def scheduled(load: Load, *, duration_s: float, seed: int, traces: Path | None) -> Workload:
    """The same requests as on the virtual clock."""
    planned = requests(load, replicas=1, duration_s=duration_s, seed=seed, traces=traces)
    return Workload("4+4", "", seed, "poisson", tuple(planned), duration_s * 1000, 0.0)


async def one_http_run(
    folder: Path,
    workload: Workload,
    *,
    warmup_s: float,
    interval: int,
    realtime: bool = False,
    drained_s: float = DRAINED_S,
    sent_until_s: float = 1e9,
) -> HttpFigures:
    """Through a gateway of its own. `interval`: the replica sends so many tokens an event;
    `sent_until_s`: of what is sent later no share is told, since it may be cut; `realtime`: what
    takes part goes before whatever else runs on this machine (needs the right)."""
    flags = FLAGS.format(interval=interval)
    with weir_dev(folder, "--engine", "simulated", "--worker-flags", flags) as system:
        keys = {each: waiting_key(system, each) for each in ("interactive", "batch")}
        pids = system.ready["pids"]
        gateway, worker = pids["gateways"][0], pids["workers"][0]
        if realtime:
            for pid in (gateway, worker, pids["redis"], os.getpid()):
                os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))
        before = [Processor.of(pid) for pid in (gateway, worker)]
        target = HttpTarget(
            system.gateway(),
            TargetFacts("Weir", simulated=True, kind="weir", takes_min_tokens=True),
            body_of=chat_bodies(
                system.model, PromptText("queue").messages, min_tokens=True, flex=False
            ),
            api_key_of=lambda planned: keys[planned.traffic_class],
            workers={"simulated-0": system.ready["workers"][0]["url"]},
        )
        running = asyncio.ensure_future(target.run(workload))
        # Batch that waits still is not waited for.
        loop = asyncio.get_running_loop()
        loop.call_later(workload.duration_ms / 1000 + drained_s, running.cancel)
        ceilings: list[int] = []
        seen = asyncio.create_task(note_ceilings(system, ceilings))
        run = await running
        seen.cancel()
        after = [Processor.of(pid) for pid in (gateway, worker)]
        if realtime:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    spent = [late.since(early) for early, late in zip(before, after, strict=True)]
    with suppress(asyncio.CancelledError):
        await seen
    figures = figures_of(
        run,
        warmup_s=warmup_s,
        sent_until_s=sent_until_s,
        interval=interval,
        gateway=spent[0],
        worker=spent[1],
    )
    return replace(figures, ceilings=tuple(ceilings))


async def note_ceilings(system: WeirDev, ceilings: list[int]) -> None:
    """Note where batch stops; for ever."""
    while True:
        await asyncio.sleep(NOTED_EVERY_S)
        url = system.gateway() + "/metrics"
        shown = await asyncio.to_thread(system.request, "GET", url)
        lines = shown.raw.decode().splitlines()
        ceilings += [int(float(each.rpartition(" ")[2])) for each in lines if CEILING in each]


def waiting_key(system: WeirDev, request_class: str) -> str:
    """Of a tenant that may have as many waiting as come."""
    tenant = new_tenant(system, request_class, max_queued=100_000, max_wait_ms=60_000)
    until_limits(tenant, 100_000)
    return tenant.key()


def figures_of(
    run: Run,
    *,
    warmup_s: float,
    sent_until_s: float,
    interval: int,
    gateway: Processor,
    worker: Processor,
) -> HttpFigures:
    """What the window shows: what was sent in it, and the tokens that came in it."""
    begin_ms, end_ms = warmup_s * 1000, run.workload.duration_ms
    sent = [
        each
        for each in of(run, "interactive")
        if begin_ms <= each.planned.send_at_ms < sent_until_s * 1000
    ]
    ttfts = sorted(each for outcome in sent if (each := ttft_ms(outcome)) is not None)
    tpots = sorted(each for outcome in sent if (each := tpot_ms(outcome)) is not None)
    tokens = sum(tokens_within(each, begin_ms, end_ms, interval) for each in of(run, "batch"))
    lags = sorted(each.step_lag_ms for each in run.samples if each.step_lag_ms is not None)
    return HttpFigures(
        sent=len(sent),
        goodput=sum(good(each, TARGETS) for each in sent) / len(sent),
        ttft_met=sum(met_ttft(each, TARGETS) for each in sent) / len(sent),
        tpot_met=sum(met_tpot(each, TARGETS) for each in sent) / len(sent),
        ttft_p95_ms=nearest_rank(ttfts, 95),
        tpot_p95_ms=nearest_rank(tpots, 95),
        batch_tokens_per_s=tokens / (end_ms - begin_ms) * 1000,
        ends=dict(Counter(f"{each.end} {each.code or ''}".strip() for each in sent)),
        ended_otherwise=sum(each.end != "ok" for each in sent),
        gateway=gateway,
        worker=worker,
        generator_lag_p99_ms=run.generator_loop_lag_p99_ms,
        step_lag_p95_ms=nearest_rank(lags, 95) if lags else 0.0,
        ceilings=(),
    )


def of(run: Run, traffic_class: str) -> Sequence[Outcome]:
    """One class of a run."""
    return [each for each in run.outcomes if each.planned.traffic_class == traffic_class]


def tokens_within(outcome: Outcome, begin_ms: float, end_ms: float, interval: int) -> float:
    """Its tokens between these instants, as if they came evenly. Of one that was cut
    its events are counted."""
    first, last = outcome.first_token_at_ms, outcome.last_token_at_ms
    if first is None or last is None:
        return 0.0
    tokens = outcome.output_tokens or (len(outcome.gaps_ms) + 1) * interval
    if last <= first:
        return float(tokens) if begin_ms <= first < end_ms else 0.0
    inside = max(0.0, min(last, end_ms) - max(first, begin_ms))
    return tokens * inside / (last - first)
