"""The replica's load as HTTP tells it: live, and as it was last published."""

import time
from collections.abc import Collection
from dataclasses import replace

from backend.sglang_http.engine import EngineInfo, Load, Scheduled
from backend.simulated.load import ReplicaLoad
from backend.simulated.replica import Replica
from backend.simulated.sequence import SimulatedSequence
from backend.simulated.stepping import Stepper


class Snapshots:
    """Notes when the replica publishes, which it does not know itself."""

    def __init__(self, replica: Replica, info: EngineInfo, stepper: Stepper) -> None:
        self._replica = replica
        self._info = info
        self._stepper = stepper
        self._seen = replica.published
        self._published = self._told(self._seen)
        self._kept: Load | None = None

    def look(self) -> None:
        """A step ended: has it published?"""
        if self._replica.published is not self._seen:
            self._seen = self._replica.published
            self._published = self._told(self._seen)

    def live(self, lingering: Collection[SimulatedSequence]) -> Load:
        """Now, with those that look as if they ran."""
        return _with(self._told(self._replica.load()), lingering)

    def published(self, lingering: Collection[SimulatedSequence], *, keep: bool) -> Load:
        """The last one, or with `keep` the one that was kept. The first call without it drops
        that."""
        self.look()
        if not keep:
            self._kept = None
        return _with(self._published, lingering) if self._kept is None else self._kept

    def keep(self, lingering: Collection[SimulatedSequence]) -> None:
        """Keep the last one as it is now."""
        self.look()
        self._kept = _with(self._published, lingering)

    def _told(self, load: ReplicaLoad) -> Load:
        totals, stepper = self._replica.totals, self._stepper
        free = load.max_total_tokens - load.used_tokens - load.evictable_tokens
        return Load(
            running=load.running,
            waiting=load.waiting,
            waiting_uncached_tokens=load.waiting_uncached_tokens,
            used_tokens=load.used_tokens,
            cached_tokens=load.evictable_tokens,
            gen_throughput=load.gen_throughput,
            scheduled=Scheduled(
                at_s=time.time(),
                cache_hit_rate=load.cache_hit_rate,
                retracted=load.retracted,
                active_tokens=load.total_tokens,
                available_tokens=free,
                prefill_tokens=totals.prefill_tokens,
                prefill_busy_us=stepper.prefill_busy_us,
                decode_moments=tuple(stepper.decode_moments),
                counters={
                    "num_retracted_requests": totals.retracted_requests,
                    "evicted_tokens": totals.evicted_tokens,
                },
                gauges={"new_token_ratio": load.new_token_ratio},
                lag_ms=stepper.lag_ms,
            ),
        )


def _with(load: Load, lingering: Collection[SimulatedSequence]) -> Load:
    """What they would hold is taken from what is cached, for there it mostly is, then from what is
    free."""
    scheduled = load.scheduled
    if not lingering or scheduled is None:
        return load
    cached, free = load.cached_tokens or 0, scheduled.available_tokens
    held = min(sum(each.live.held_tokens + each.held for each in lingering), cached + free)
    from_cached = min(held, cached)
    return replace(
        load,
        running=load.running + len(lingering),
        used_tokens=load.used_tokens + held,
        cached_tokens=cached - from_cached,
        scheduled=replace(
            scheduled,
            active_tokens=scheduled.active_tokens + held,
            available_tokens=free - (held - from_cached),
        ),
    )
