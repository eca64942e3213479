"""The replica's load as it is now and as it was last published, and its counters."""

from backend.simulated.admission import PrefillPass
from backend.simulated.load import LoadMeter, ReplicaLoad, ReplicaTotals
from backend.simulated.selection import Selection
from backend.simulated.step import Step


class Report:
    """Reads the scheduler's parts and changes none of them."""

    def __init__(self, selection: Selection, totals: ReplicaTotals, publish_interval: int) -> None:
        self._scheduler = selection
        self._totals = totals
        self._meter = LoadMeter(publish_interval)
        self._now_ms = 0.0
        self.published = self.load(0)

    def load(self, joining: int) -> ReplicaLoad:
        """The load now, with so many about to join the decode batch."""
        scheduler = self._scheduler
        waiting, pool = scheduler.waiting, scheduler.pool
        used = pool.used_tokens
        uncached = waiting.uncached_tokens(self._meter.recent_hit_rate)
        half = scheduler.chunked
        if half is not None:
            uncached += half.text_tokens - half.computed_tokens
        return ReplicaLoad(
            running=len(scheduler.batch) + joining,
            waiting=len(waiting),
            waiting_uncached_tokens=uncached,
            used_tokens=used,
            total_tokens=used + waiting.text_tokens,
            evictable_tokens=pool.evictable_tokens,
            max_total_tokens=pool.size_tokens,
            token_usage=used / pool.size_tokens if pool.size_tokens else 0.0,
            gen_throughput=self._meter.throughput(self._now_ms),
            cache_hit_rate=self._meter.hit_rate,
            retracted=waiting.retracted,
            new_token_ratio=scheduler.ratio.current,
        )

    def prefilled(self, now_ms: float, chosen: PrefillPass) -> None:
        """A prefill step begins."""
        self._now_ms = now_ms
        self._meter.prefilled(now_ms, chosen.found_first, chosen.computed_first)

    def step_ended(self, step: Step, generated: int, now_ms: float) -> None:
        """Count a step, and publish if it is time."""
        self._now_ms = now_ms
        totals, kind = self._totals, step.kind
        totals.prefill_tokens += step.new_tokens
        totals.generated_tokens += generated
        totals.steps[kind] = totals.steps.get(kind, 0) + 1
        totals.busy_ms[kind] = totals.busy_ms.get(kind, 0.0) + step.duration_ms
        if kind == "decode":
            self._meter.decoded(now_ms, step.sequences)
        if self._meter.due(prefilled=kind != "decode"):
            self.published = self.load(0)

    def idle(self, now_ms: float) -> None:
        """There is nothing to do: that is published at once."""
        self._now_ms = now_ms
        self._meter.published_idle()
        self.published = self.load(0)
