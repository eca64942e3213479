"""REC-3, worker by worker: how far an engine's own counters rose against the attempts that ended
there meanwhile.

Engines count a request when it ends, whole, aborted or not; of health probes they count nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from billing.domain.reconciliation.findings import Check, Finding, Verdict, terms
from billing.domain.reconciliation.ledgers import Ran

EDGE_MS = 2_000
"""What ends so near to a sample may be counted before it or after it: clocks differ by a second."""


@dataclass(frozen=True)
class Sample:
    """A worker's counters, asked for and told at these instants. `life` grows with each restart."""

    worker_id: str
    life: int
    asked_at_ms: int
    taken_at_ms: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Meanwhile:
    """What explains that an engine has counted more than is recorded, without saying how much."""

    gateway_lost: int
    """Requests whose gateway died: they have no attempts."""
    open: int
    """Requests that were admitted and have not ended: an attempt of theirs may have."""


@dataclass
class _Sums:
    rose: int = 0
    recorded: int = 0
    at_the_edge: int = 0
    lower_bound: int = 0
    unwitnessed: int = 0


def check_engines(
    samples: Sequence[Sample], attempts: Sequence[Ran], meanwhile: Meanwhile
) -> Verdict:
    """All workers. Attempts on a worker that has fewer than two samples are unwitnessed."""
    lives: dict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in sorted(samples, key=lambda each: each.taken_at_ms):
        lives[sample.worker_id, sample.life].append(sample)
    by_worker: dict[str, list[Ran]] = defaultdict(list)
    for ran in attempts:
        by_worker[ran.worker_id].append(ran)
    sums = _Sums()
    findings: list[Finding] = []
    witnessed: set[int] = set()
    for (worker_id, _), found in sorted(lives.items()):
        first, last = _quiet_pair(found, by_worker[worker_id])
        if first is last:
            continue
        of_life = [
            ran
            for ran in by_worker[worker_id]
            if first.asked_at_ms - EDGE_MS < ran.ended_at_ms <= last.taken_at_ms + EDGE_MS
        ]
        witnessed.update(map(id, of_life))
        for name in ("prompt_tokens", "output_tokens"):
            findings += _of_life(name, (first, last), of_life, sums=sums, meanwhile=meanwhile)
    sums.unwitnessed = sum(
        ran.prompt_tokens + ran.output_tokens for ran in attempts if id(ran) not in witnessed
    )
    return Verdict(
        Check.ENGINES,
        terms(
            workers=len({worker_id for worker_id, _ in lives}),
            lives=len(lives),
            counted=sums.rose,
            recorded=sums.recorded,
            at_the_edge=sums.at_the_edge,
            lower_bound=sums.lower_bound,
            unwitnessed=sums.unwitnessed,
            gateway_lost_requests=meanwhile.gateway_lost,
            open_requests=meanwhile.open,
        ),
        tuple(findings),
    )


def _quiet_pair(found: Sequence[Sample], attempts: Sequence[Ran]) -> tuple[Sample, Sample]:
    """The first and the last sample near which nothing ended, or simply these."""
    quiet = [each for each in found if not any(_is_near(ran, each) for ran in attempts)]
    first, last = (quiet[0], quiet[-1]) if len(quiet) > 1 else (found[0], found[-1])
    return first, last


def _is_near(ran: Ran, sample: Sample) -> bool:
    return sample.asked_at_ms - EDGE_MS < ran.ended_at_ms <= sample.taken_at_ms + EDGE_MS


def _of_life(
    name: str,
    pair: tuple[Sample, Sample],
    attempts: Sequence[Ran],
    *,
    sums: _Sums,
    meanwhile: Meanwhile,
) -> Iterator[Finding]:
    first, last = pair
    subject = f"{first.worker_id}, life {first.life}"
    rose = getattr(last, name) - getattr(first, name)
    near = [ran for ran in attempts if _is_near(ran, first) or _is_near(ran, last)]
    edge = sum(getattr(ran, name) for ran in near)
    sure = sum(getattr(ran, name) for ran in attempts) - edge
    sums.rose += rose
    sums.recorded += sure
    sums.at_the_edge += edge
    kind = name.partition("_")[0]
    if rose < sure:
        what = f"{sure} {kind} tokens are recorded, and the engine counted {rose}"
        yield Finding(Check.ENGINES, subject, None, sure - rose, "tokens", what)
    over = rose - sure - edge
    if over <= 0:
        return
    is_bounded = all(ran.is_exact for ran in attempts)
    if is_bounded and not (meanwhile.gateway_lost or meanwhile.open):
        what = f"the engine counted {rose} {kind} tokens, and {sure + edge} are recorded"
        yield Finding(Check.ENGINES, subject, None, over, "tokens", what)
    else:
        sums.lower_bound += over
