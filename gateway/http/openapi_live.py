"""The shape of `/admin/v1/live`'s answer, which `gateway/serving/live_view.py` makes."""

import msgspec

from gateway.domain.tenant import RequestClass
from gateway.http.openapi_answers import Instant, ScopeUseAnswer


class _Answer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class LiveTenant(ScopeUseAnswer):
    """A tenant that holds something or waits. `sequences_queued` are its requests that wait, those
    for its own limits included; null where a model's queue could not be looked at."""

    id: str
    name: str
    suspended: bool
    max_queued: int
    sequences_queued: int | None


class QueuedTokens(_Answer):
    """Tokens that wait, by class."""

    interactive: int
    batch: int


class LiveClass(_Answer):
    """What of one class waits for a place. Weighted tokens count in the order: output twice.
    `predicted_wait_ms` is of a request behind all of them, null while nothing is known."""

    requests: int
    weighted_tokens: int
    oldest_wait_ms: int | None
    predicted_wait_ms: int | None


class LiveQueue(_Answer):
    """By class."""

    interactive: LiveClass
    batch: LiveClass


class LivePool(_Answer):
    """A pool's queue, over all gateways. `class` is the one that its workers are reserved for, null
    of the model's others. `parked` wait for their own tenant's limits; `sequences_running` have
    places on workers. All of it null where it could not be looked at."""

    model: str
    request_class: RequestClass | None = msgspec.field(name="class")
    queued_tokens: QueuedTokens | None
    queue: LiveQueue | None
    parked: int | None
    sequences_running: int | None


class LivePlaces(_Answer):
    """What places on a worker hold, of all gateways, and its ceilings; null is no ceiling. Batch is
    sent up to `batch_max` sequences of any class, interactive up to `sequences_max`."""

    sequences: int
    sequences_max: int | None
    batch_max: int | None
    tokens: int
    tokens_max: int | None


class LiveFigures(_Answer):
    """The 95th percentiles of the requests that ended in a time, to 5 %, and of how many they are.
    Null where there was none."""

    ttft_p95_ms: float | None
    ttft_count: int
    tpot_p95_ms: float | None
    tpot_count: int


class LiveLatency(_Answer):
    """Over all gateways. Times reach back to a whole slice of 10 s."""

    last_minute: LiveFigures
    last_five_minutes: LiveFigures


class LiveModelLatency(LiveLatency):
    """Of one model and class, whoever served it, and what it is held against."""

    model: str
    request_class: RequestClass = msgspec.field(name="class")
    ttft_target_ms: int
    tpot_target_ms: int


class LiveWorker(_Answer):
    """A worker as this gateway sees it; null is what the engine does not report. `places` are the
    queue's own account of it, null where it has none; `latency` is null where the store did not
    tell."""

    id: str
    model: str
    engine: str
    healthy: bool
    draining: bool
    request_class: RequestClass | None = msgspec.field(name="class")
    running: int | None
    waiting: int | None
    in_flight: int
    kv_used_tokens: int | None
    kv_total_tokens: int | None
    load_age_ms: int | None
    version: str | None
    cache_report: bool | None
    priority_order: str | None
    context_tokens: int | None
    places: LivePlaces | None
    latency: LiveLatency | None


class LiveHosted(_Answer):
    """A hosted provider; `circuit` is this gateway's own: closed, open or half_open. `running` are
    all gateways' streams there, `in_use_since` is when the present use began: it is over after ten
    seconds without a stream. Both null, and `latency`, where the store did not tell."""

    name: str
    enabled: bool
    models: list[str]
    circuit: str
    running: int | None
    in_use_since: Instant | None
    latency: LiveLatency | None


class LiveAnswer(_Answer):
    """What runs now, over all gateways, and what is degraded. `latency` is null where the store did
    not tell."""

    tenants: list[LiveTenant]
    pools: list[LivePool]
    latency: list[LiveModelLatency] | None
    workers: list[LiveWorker]
    hosted: list[LiveHosted]
    degraded: list[str]
