"""What SGLang's launch flags set, as far as the simulated scheduler obeys them."""

from dataclasses import dataclass
from typing import Literal

EvictionPolicy = Literal["lru", "lfu", "slru"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerFlags:
    """Named and preset as in SGLang 0.5.23 (`server_args.py`), sizes in tokens."""

    max_total_tokens: int = 640_000
    """Size of the KV pool."""
    context_length: int = 131_072
    page_size: int = 1
    max_running_requests: int = 512
    max_queued_requests: int | None = None
    chunked_prefill_size: int = 8192
    max_prefill_tokens: int = 16_384
    enable_mixed_chunk: bool = False
    prefill_decode_interval: int = 0
    """Decode steps after each prefill step before the next may run; 0 is prefill first."""
    schedule_policy: Literal["fcfs", "lpm"] = "fcfs"
    schedule_conservativeness: float = 1.0
    enable_priority_scheduling: bool = False
    schedule_low_priority_values_first: bool = False
    priority_scheduling_preemption_threshold: int = 10
    disable_priority_preemption: bool = False
    retraction_policy: Literal["length", "priority"] = "length"
    disable_radix_cache: bool = False
    radix_eviction_policy: EvictionPolicy = "lru"
    """Which cached text goes first where room is needed."""
    load_snapshot_publish_interval: int = 15
    """Decode steps between two snapshots of `/v1/loads`."""
