"""REC-3, worker by worker: how far an engine's own counters rose against the attempts that ended
there meanwhile.

Engines count a request when it ends, whole, aborted or not; of health probes they count nothing.
Its gateway sees the end when the client has read the last of it, which may be a minute later.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from billing.domain.reconciliation.findings import Check, Finding, Verdict, terms
from billing.domain.reconciliation.worker_counts import (
    EDGE_MS,
    LATE_MS,
    Sample,
    Stretch,
    WorkerCounts,
)

__all__ = [
    "EDGE_MS",
    "LATE_MS",
    "EngineCheck",
    "Meanwhile",
    "OnWorker",
    "Sample",
    "check_engines",
]


class OnWorker(Protocol):
    """What is asked of an attempt on a worker of ours."""

    @property
    def worker_id(self) -> str: ...
    @property
    def started_at_ms(self) -> int: ...
    @property
    def ended_at_ms(self) -> int: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def is_exact(self) -> bool: ...


@dataclass(frozen=True)
class Meanwhile:
    """What explains that an engine has counted more than is recorded, without saying how much."""

    gateway_lost: int
    """Requests whose gateway died: they have no attempts."""
    open: int
    """Requests that were admitted and whose end is not in Postgres: an attempt of theirs may have
    ended."""
    is_known: bool = True
    """Whether anybody could be asked what is open."""


class EngineCheck:
    """REC-3 in portions: all samples, then all attempts, then what it says. What it keeps grows
    with the samples alone."""

    def __init__(self) -> None:
        self._workers: dict[str, WorkerCounts] = defaultdict(WorkerCounts)
        self._elsewhere = 0

    @property
    def has_samples(self) -> bool:
        """Whether any engine was sampled."""
        return bool(self._workers)

    def see(self, samples: Iterable[Sample]) -> None:
        """Some samples; each worker's come in order of `taken_at_ms`."""
        for sample in samples:
            self._workers[sample.worker_id].see(sample)

    def add(self, attempts: Iterable[OnWorker]) -> None:
        """Some attempts. Those on a worker that nobody sampled are unwitnessed."""
        for each in attempts:
            worker = self._workers.get(each.worker_id)
            if worker is None:
                self._elsewhere += each.prompt_tokens + each.output_tokens
                continue
            worker.add(
                each.started_at_ms,
                each.ended_at_ms,
                each.prompt_tokens,
                each.output_tokens,
                is_exact=each.is_exact,
            )

    def verdict(self, meanwhile: Meanwhile) -> Verdict:
        """On all that was seen and added."""
        sizes = dict.fromkeys(("counted", "recorded", "at_the_edge", "lower_bound"), 0)
        findings: list[Finding] = []
        unwitnessed = self._elsewhere
        for worker_id, worker in sorted(self._workers.items()):
            stretches, of_nobody = worker.stretches()
            unwitnessed += of_nobody
            for each in stretches:
                sizes["counted"] += sum(each.rose)
                sizes["recorded"] += sum(each.sure)
                sizes["at_the_edge"] += sum(each.at_the_edge)
                subject = f"{worker_id}, life {each.life}"
                for finding, lower in _of_stretch(subject, each, meanwhile):
                    sizes["lower_bound"] += lower
                    findings += [finding] if finding is not None else []
        return Verdict(
            Check.ENGINES,
            terms(
                workers=len(self._workers),
                lives=sum(worker.lives for worker in self._workers.values()),
                **sizes,
                unwitnessed=unwitnessed,
                gateway_lost_requests=meanwhile.gateway_lost,
                open_requests=meanwhile.open,
            ),
            tuple(findings),
        )


def check_engines(
    samples: Iterable[Sample], attempts: Iterable[OnWorker], meanwhile: Meanwhile
) -> Verdict:
    """All at once; samples in any order."""
    check = EngineCheck()
    check.see(sorted(samples, key=lambda each: each.taken_at_ms))
    check.add(attempts)
    return check.verdict(meanwhile)


def _of_stretch(
    subject: str, stretch: Stretch, meanwhile: Meanwhile
) -> Iterator[tuple[Finding | None, int]]:
    """What is wrong with each count, or how much of it is a lower bound."""
    is_explained = not stretch.is_exact or meanwhile.gateway_lost or meanwhile.open
    is_explained = is_explained or not meanwhile.is_known
    counts = zip(("prompt", "output"), stretch.rose, stretch.sure, stretch.at_the_edge, strict=True)
    for kind, rose, sure, edge in counts:
        over = rose - sure - edge
        if rose < sure:
            what = f"{sure} {kind} tokens are recorded, and the engine counted {rose}"
            yield Finding(Check.ENGINES, subject, None, sure - rose, "tokens", what), 0
        elif over > 0 and is_explained:
            yield None, over
        elif over > 0:
            what = f"the engine counted {rose} {kind} tokens, and {sure + edge} are recorded"
            yield Finding(Check.ENGINES, subject, None, over, "tokens", what), 0
