"""What this gateway knows of one worker's ceilings, and what it has seen of it since it last met
the others."""

from collections import Counter
from dataclasses import dataclass, field, replace

from gateway.domain.queue.ceilings import EngineFacts
from gateway.domain.queue.learned import Learned, Record, direction
from gateway.domain.queue.learning import LatencyRule
from gateway.domain.queue.samples import Samples
from gateway.domain.queue.tickets import Band
from gateway.domain.worker import WorkerView
from gateway.serving.queue.pace import StreamPace
from gateway.serving.queue_ports import PoolUse
from gateway.telemetry import ceilings as metrics

AWAY_US = 2_000_000
"""An engine takes longer than this to start: one that was away for less was only not reached."""


class StoreTime:
    """The store's time, by the clock here that never jumps: that of all records."""

    def __init__(self, now_ms: int, now_us: int) -> None:
        self._ahead_ms = 0
        self.set(now_ms, now_us)

    def set(self, now_ms: int, now_us: int) -> None:
        """The store has said that it is `now_ms`."""
        self._ahead_ms = now_ms - now_us // 1000

    def at(self, us: int) -> int:
        """In ms, of an instant of the clock here."""
        return us // 1000 + self._ahead_ms


@dataclass
class WorkerSeen:
    """One worker."""

    id: str
    rule: LatencyRule
    time: StoreTime
    learned: Learned
    samples: Samples
    """Since the last meeting."""
    facts: EngineFacts
    streams: Counter[Band] = field(default_factory=Counter)
    """Open here."""
    running: int = 0
    """Sequences, from all gateways, at the last look."""
    _away_since_us: int | None = None
    _has_restarted: bool = False

    def pace(self, band: Band, now_us: int) -> StreamPace:
        """Of a stream that is opened now."""
        self.streams[band] += 1

        def ended(stay_ms: int | None) -> None:
            self.streams[band] -= 1
            if stay_ms is not None:
                self._add(Samples(self.learned.epoch, ended=1, stay_ms=stay_ms))

        return StreamPace(
            opened_us=now_us,
            stretch_ms=self.rule.stretch_ms,
            on_stretch=self._stretch,
            on_end=ended,
        )

    def look(self, use: PoolUse, *, has_interactive: bool, now_us: int) -> None:
        """How its pool stands."""
        self.running = next((room.running for room in use.rooms if room.id == self.id), 0)
        looked = self.rule.look(
            self.learned,
            waiting=use.bands[Band.INTERACTIVE].requests,
            batch_waiting=use.bands[Band.BATCH].requests,
            running=self.running,
            batch_running=self.streams[Band.BATCH],
        )
        seen_ms = self.time.at(now_us) if has_interactive else 0
        self._add(replace(looked, interactive_ms=seen_ms))

    def probed(self, view: WorkerView, now_us: int) -> None:
        """How the worker was found: one that was away and is there again has restarted."""
        if not view.healthy:
            if self._away_since_us is None:
                self._away_since_us = now_us
            return
        self.facts = facts_of(view)
        if self._away_since_us is not None and now_us - self._away_since_us >= AWAY_US:
            self._has_restarted = True
        self._away_since_us = None

    def brings(self) -> Record:
        """To the meeting; what was seen is brought once."""
        brought, self.samples = self.samples, Samples(self.learned.epoch)
        return Record(self.learned, brought)

    def met(self, record: Record) -> None:
        """What all know is known here."""
        self.learned = record.learned
        self.samples = Samples(record.learned.epoch).plus(self.samples)

    def decides(self, record: Record, now_us: int) -> tuple[Record, str] | None:
        """What follows from a record, and what that comes to in a word (`metrics.DECISIONS`). None:
        nothing is to be decided yet."""
        now_ms, before = self.time.at(now_us), record.learned
        if self._has_restarted:
            self._has_restarted = False
            after, word = self.rule.restarted(before, now_ms=now_ms), "restarted"
        else:
            decided = self.rule.decide(before, record.samples, self.facts, now_ms=now_ms)
            after, word = decided or before, direction(before, decided or before)
        if after.epoch == before.epoch:
            return None
        return Record(after, Samples(after.epoch)), word

    def _stretch(self, began_us: int, ended_us: int, tokens: int) -> None:
        seen = self.rule.stretch(
            self.learned,
            began_ms=self.time.at(began_us),
            ended_ms=self.time.at(ended_us),
            tokens=tokens,
            running=self.running,
        )
        if seen.counted:
            metrics.SAMPLES.labels(result="over" if seen.over else "within").inc()
        self._add(seen)

    def _add(self, samples: Samples) -> None:
        self.samples = self.samples.plus(samples)


def facts_of(view: WorkerView) -> EngineFacts:
    """What a worker holds. The loads it reports are of all its ranks, its description of one."""
    return EngineFacts(
        kv_tokens=view.kv_total_tokens or view.engine.pool_tokens,
        running_max=view.engine.running_max,
    )
