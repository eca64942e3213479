"""The workers over a run, and whether what was written of it agrees with what was sent."""

from statistics import fmean

from backend.loadtest.generator_guard import step_lags_p95_ms
from backend.loadtest.run import Outcome, Run, WorkerSample
from backend.loadtest.steady import Window
from backend.loadtest.summary import Fleet, Rows, WorkerLoad


def fleet(run: Run, window: Window) -> Fleet:
    """Each worker by its samples within the window. A mean is of samples, each counting once."""
    by_worker: dict[str, list[WorkerSample]] = {}
    for sample in run.samples:
        if window.holds(sample.at_ms):
            by_worker.setdefault(sample.worker, []).append(sample)
    lags_ms = step_lags_p95_ms(run, window)
    workers = [_worker(name, by_worker[name], lags_ms.get(name)) for name in sorted(by_worker)]
    return Fleet(
        workers=workers,
        running_spread=_spread([worker.running_mean for worker in workers]),
        kv_used_spread_share=_spread([worker.kv_used_mean_share for worker in workers]),
        retracted=run.retracted,
    )


def kv_share(sample: WorkerSample) -> float:
    """KV tokens in use of those there are; 0 of a worker that does not say how many."""
    return sample.kv_used_tokens / sample.kv_total_tokens if sample.kv_total_tokens else 0.0


def rows(run: Run) -> Rows | None:
    """Whether each request whose answer began has its usage record, and no other has one but
    perhaps those that failed before an answer. None where the test could not look."""
    if run.rows_written is None:
        return None
    begun = sum(_begun(outcome) for outcome in run.outcomes)
    undecided = sum(
        not _begun(outcome) and outcome.end != "rate_limited" for outcome in run.outcomes
    )
    return Rows(
        written=run.rows_written,
        begun=begun,
        undecided=undecided,
        match=begun <= run.rows_written <= begun + undecided,
    )


def _begun(outcome: Outcome) -> bool:
    return outcome.end == "ok" or outcome.status == 200


def _worker(name: str, samples: list[WorkerSample], step_lag_p95_ms: float | None) -> WorkerLoad:
    kv = [kv_share(sample) for sample in samples]
    return WorkerLoad(
        worker=name,
        samples=len(samples),
        running_mean=fmean(s.running for s in samples),
        running_max=max(s.running for s in samples),
        waiting_mean=fmean(s.waiting for s in samples),
        waiting_max=max(s.waiting for s in samples),
        waiting_tokens_mean=fmean(s.waiting_tokens for s in samples),
        waiting_tokens_max=max(s.waiting_tokens for s in samples),
        kv_used_mean_share=fmean(kv),
        kv_used_max_share=max(kv),
        step_lag_p95_ms=step_lag_p95_ms,
    )


def _spread(values: list[float]) -> float:
    return max(values) - min(values) if values else 0.0
