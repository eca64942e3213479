"""What one run comes to: the document `summary.json` holds, each figure named with its unit.

A share is a fraction of one. The *window* is the schedule after its warm-up. Figures of requests
are of those whose intended send time lies in the window, wherever they ended; figures of flow are
of what happened in the window, whoever it belonged to.
"""

import msgspec

from backend.loadtest.measure import GoodputTargets
from backend.loadtest.percentiles import Percentiles

SCHEMA_VERSION = 1


class Attainment(msgspec.Struct, frozen=True, kw_only=True):
    """Who met the targets, of all that were *sent*: what failed or was refused is bad."""

    targets: GoodputTargets
    good: int
    attainment_share: float
    goodput_rps: float
    """Good requests per second of the window."""
    ttft_met_share: float
    tpot_met_share: float
    """Of all sent too; who failed met neither."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Some of a run's requests. Latencies are of those that ended whole; None where none did."""

    name: str
    sent: int
    finished: int
    finished_rps: float
    """Of those sent in the window, how many a second of it ended whole, whenever that was."""
    goodput: Attainment
    ttft: Percentiles | None
    tpot: Percentiles | None
    itl: Percentiles | None
    """Every gap between content events as the client saw them."""
    e2e: Percentiles | None
    queue_grows: bool


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that went through the target within the window."""

    input_tokens_per_s: float
    """Whole prompts, what was cached of them too."""
    cached_tokens_per_s: float
    output_tokens_per_s: float
    output_planned_share: float | None
    """Of the requests that ended whole and said so: output tokens generated, of those planned."""
    counted_by_events: int = 0
    """Whole answers of the run that did not say how many tokens they had: their content events
    stand for them, in TPOT and in the output."""


class HitRate(msgspec.Struct, frozen=True, kw_only=True):
    """Reported cached prompt tokens of all prompt tokens. None: the target reports none."""

    window_share: float | None
    run_share: float | None
    """With the warm-up: what compares with the ideal."""
    ideal_share: float
    unplanned_share: float
    """Of the run's prompt tokens, those beyond the plan: a chat template's, all of which a cache
    may hold although the ideal knows nothing of them."""
    unreported: int
    """Whole answers of the run that did not say what was cached."""


class WorkerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """One worker over the window, from samples of its own load figures."""

    worker: str
    samples: int
    running_mean: float
    running_max: int
    waiting_mean: float
    waiting_max: int
    waiting_tokens_mean: float
    waiting_tokens_max: int
    kv_used_mean_share: float
    kv_used_max_share: float
    step_lag_p95_ms: float | None = None
    """How late a simulated worker's steps ended, in real milliseconds: the latest of some seconds,
    read about once a second, and of those the p95."""


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The workers together. Spreads are the greatest mean less the smallest; 0 of one worker."""

    workers: list[WorkerLoad]
    running_spread: float
    kv_used_spread_share: float
    retracted: int | None


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """The billing check: usage records written against requests of the whole run."""

    written: int
    begun: int
    """Requests whose answer began: each has exactly one record."""
    undecided: int
    """Failed before an answer: admitted or not, the client cannot know."""
    match: bool


class Generator(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the load generator kept up. Lags are of real time, whatever the target's clock."""

    send_lag_p50_ms: float
    send_lag_p99_ms: float
    send_lag_max_ms: float
    loop_lag_p99_ms: float
    """How late its event loop ran what was due."""
    cpu_share: float


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What was tested."""

    description: str
    simulated: bool | None
    """None where the target does not say."""
    clock_speed: float
    step_times: str | None


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent, and when."""

    workload: str
    workload_sha256: str
    seed: int
    arrivals: str
    requests: int
    duration_ms: float
    warmup_ms: float
    window_ms: float
    offered_rps: float
    """Planned requests per second of the window."""
    achieved_rps: float
    """Whole answers that ended per second of the window, whoever sent them."""
    in_flight_mean: float
    in_flight_max: int
    stopped_at_ms: float | None = None
    """When the run was interrupted; None where it was not."""
    unfinished: int = 0
    """Requests of the window that were in flight then. They count neither as good nor as bad: all
    figures of requests leave them out."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One run at one rate."""

    schema_version: int = SCHEMA_VERSION
    target: Target
    load: Load
    all: Group
    by_class: list[Group]
    by_tenant: list[Group]
    """Those that sent most, the most first."""
    short_prompts: Group
    """Prompts under the tokens that DESIGN's TTFT target speaks of."""
    ttft_for_every_prompt: Attainment
    ttft_for_short_prompts: Attainment
    """Both readings of the TTFT target; `all.goodput` is by the one that was asked for."""
    tokens: Tokens
    hit_rate: HitRate
    ends: dict[str, int]
    """How the requests of the window ended."""
    error_codes: dict[str, int]
    fleet: Fleet
    rows: Rows | None
    """None where the test could not look."""
    generator: Generator
    queue_grows: bool
    """Of the class that decides: the interactive one, or all where there is none."""
    itl_distribution_ms: list[float]
    """At equal steps of the share of gaps that do not exceed it; the last is the greatest."""
    warnings: list[str]
    refusals: list[str]
    """Why the run proves nothing; empty where it does."""

    @property
    def refused(self) -> bool:
        """Whether the run proves nothing of its target."""
        return bool(self.refusals)
