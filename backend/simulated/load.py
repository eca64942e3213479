"""What a replica says of its load, and what it has done in all."""

from collections import deque
from dataclasses import dataclass, field

_HIT_WINDOW_MS = 15_000.0
_DECODE_REPORT_STEPS = 40
_THROUGHPUT_STALE_MS = 30_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLoad:
    """As `/v1/loads` of SGLang reports it."""

    running: int
    """Sequences in the decode batch or about to join it; the one whose prompt is cut into chunks
    is neither here nor among those who wait, its rest is in `waiting_uncached_tokens`."""
    waiting: int
    waiting_uncached_tokens: int
    """What is left to compute of prompts: reckoned with the recent hit rate."""
    used_tokens: int
    """KV slots that are neither free nor evictable."""
    total_tokens: int
    """`used_tokens` and all of those who wait."""
    evictable_tokens: int
    max_total_tokens: int
    token_usage: float
    """`used_tokens` over the pool."""
    gen_throughput: float
    """Tokens a second over the last 40 decode steps, 0 when they are long past."""
    cache_hit_rate: float
    """Of the last prefill step's prompts, those computed again left out."""
    retracted: int
    """Those among `waiting` who ran before."""
    new_token_ratio: float


@dataclass(slots=True, kw_only=True)
class ReplicaTotals:
    """Since the replica began."""

    requests: int = 0
    refused: int = 0
    """For want of a place in the queue."""
    aborted: int = 0
    prefill_tokens: int = 0
    """Computed, those of a retracted sequence again."""
    cached_tokens: int = 0
    """Found in the prefix cache, at first admissions."""
    generated_tokens: int = 0
    retracted_requests: int = 0
    preempted_requests: int = 0
    out_of_memory: int = 0
    evicted_tokens: int = 0
    steps: dict[str, int] = field(default_factory=dict)
    """By kind of step."""
    busy_ms: dict[str, float] = field(default_factory=dict)
    """By kind of step."""


class LoadMeter:
    """The rates, and when a snapshot is due."""

    def __init__(self, publish_interval: int) -> None:
        self._interval = max(1, publish_interval)
        self._unpublished_steps = 0
        self._hits: deque[tuple[float, int, int]] = deque()
        self._found = self._asked = 0
        self._decode_steps = self._decoded = 0
        self._reported_ms = 0.0
        self._throughput = 0.0
        self.hit_rate = 0.0

    def due(self, *, prefilled: bool) -> bool:
        """A step has ended: whether its snapshot is published. A prefill's always is."""
        self._unpublished_steps += 1
        if not prefilled and self._unpublished_steps < self._interval:
            return False
        self._unpublished_steps = 0
        return True

    def published_idle(self) -> None:
        """A snapshot was published because there is nothing to do."""
        self._unpublished_steps = 0

    def prefilled(self, now_ms: float, found: int, computed: int) -> None:
        """A prefill step began with so many first-time tokens found cached and to compute."""
        while self._hits and self._hits[0][0] <= now_ms - _HIT_WINDOW_MS:
            _, old_found, old_asked = self._hits.popleft()
            self._found -= old_found
            self._asked -= old_asked
        asked = found + computed
        self.hit_rate = found / asked if asked else 0.0
        if asked:
            self._hits.append((now_ms, found, asked))
            self._found += found
            self._asked += asked

    def decoded(self, now_ms: float, sequences: int) -> None:
        """A decode step ended."""
        self._decode_steps += 1
        self._decoded += sequences
        if self._decode_steps % _DECODE_REPORT_STEPS == 0:
            passed_s = (now_ms - self._reported_ms) / 1000
            self._throughput = self._decoded / passed_s if passed_s > 0 else 0.0
            self._decoded = 0
            self._reported_ms = now_ms

    def throughput(self, now_ms: float) -> float:
        """Tokens a second by the last report, 0 if it is more than 30 s old."""
        return 0.0 if now_ms - self._reported_ms > _THROUGHPUT_STALE_MS else self._throughput

    @property
    def recent_hit_rate(self) -> float:
        """Over the 15 s before the last prefill step."""
        return self._found / self._asked if self._asked else 0.0
