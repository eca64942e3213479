"""What each span says: a row a span and attribute, and no attribute without a row."""

from collections import defaultdict
from typing import Any, NamedTuple

import engine_events as events
import pytest
import trace_scenarios as happens
from memory_gateway import MemoryGateway
from trace_scenarios import Scenario
from traced_requests import table_name, traced, tree

from gateway.errors import WorkerFailed
from gateway.serving.ports import HeldLease
from gateway.serving.request_spans import _of_lease
from gateway.telemetry.trace_names import SPANS

BUG_IN = {name: happens.with_a_bug_in(name) for name in ("usage", "record", "settle")}


class Row(NamedTuple):
    """In this scenario the spans of this name, in the order in which they began, say this of the
    attribute; None of those that say nothing."""

    span: str
    attribute: str
    scenario: Scenario
    values: list[Any]


ROWS = [
    Row("request", "http.request.method", happens.answered, ["POST"]),
    Row("request", "http.response.status_code", happens.answered, [200]),
    Row("request", "http.response.status_code", happens.nobody, [401]),
    Row("request", "http.response.status_code", happens.gone_early, [None]),
    Row("request", "http.route", happens.answered, ["/v1/chat/completions"]),
    Row("request", "http.route", happens.two_choices, ["/v1/completions"]),
    Row("request", "url.path", happens.two_choices, ["/v1/completions"]),
    Row("request", "url.scheme", happens.answered, ["http"]),
    Row("request", "gen_ai.operation.name", happens.answered, ["chat"]),
    Row("request", "gen_ai.operation.name", happens.two_choices, ["text_completion"]),
    Row("request", "gen_ai.request.model", happens.answered, ["m"]),
    Row("request", "gen_ai.request.model", happens.unreadable, [None]),
    Row("request", "gen_ai.request.choice.count", happens.two_choices, [2]),
    Row("request", "gen_ai.request.max_tokens", happens.answered, [50]),
    Row("request", "gen_ai.request.max_tokens", happens.two_choices, [None]),
    Row("request", "gen_ai.request.stream", happens.answered, [True]),
    Row("request", "gen_ai.request.stream", happens.fell_back, [False]),
    Row("request", "gen_ai.provider.name", happens.answered, ["self"]),
    Row("request", "gen_ai.provider.name", happens.fell_back, ["hosted:acme-ai"]),
    Row("request", "gen_ai.response.model", happens.fell_back, ["m"]),
    Row("request", "gen_ai.response.model", happens.engine_refused, [None]),
    Row("request", "gen_ai.response.finish_reasons", happens.answered, [("stop",)]),
    Row(
        "request",
        "gen_ai.response.finish_reasons",
        happens.two_choices,
        [("content_filter", "stop")],
    ),
    Row("request", "gen_ai.response.finish_reasons", happens.odd_end, [("other",)]),
    Row("request", "gen_ai.usage.input_tokens", happens.two_choices, [5]),
    Row("request", "gen_ai.usage.output_tokens", happens.two_choices, [2]),
    Row("request", "gen_ai.usage.output_tokens", happens.engine_refused, [None]),
    Row("request", "gen_ai.usage.cache_read.input_tokens", happens.answered, [3]),
    Row("request", "gen_ai.usage.reasoning.output_tokens", happens.answered, [1]),
    Row("request", "error.type", happens.answered, [None]),
    Row("request", "error.type", happens.nobody, ["invalid_api_key"]),
    Row("request", "error.type", happens.gone_early, ["client_gone"]),
    Row("request", "error.type", BUG_IN["settle"], ["internal_error"]),
    Row("request", "weir.limit.kind", happens.over_a_limit, ["requests"]),
    Row("request", "weir.tenant.id", happens.answered, ["acme"]),
    Row("request", "weir.tenant.id", happens.nobody, [None]),
    Row("request", "weir.key.id", happens.unreadable, ["key-1"]),
    Row("request", "weir.request.class", happens.answered, ["interactive"]),
    Row("request", "weir.request.class", happens.batch, ["batch"]),
    Row("request", "weir.billable", happens.answered, [True]),
    Row("request", "weir.billable", happens.engine_refused, [False]),
    Row("request", "weir.outcome", happens.answered, ["completed"]),
    Row("request", "weir.outcome", happens.engine_refused, ["refused"]),
    Row("request", "weir.outcome", happens.over_a_limit, [None]),
    Row("request", "weir.attempts", happens.fell_back, [3]),
    Row("request", "weir.queue_ms", happens.waited, [40]),
    Row("request", "weir.ttft_ms", happens.answered, [30]),
    Row("request", "weir.tpot_us", happens.answered, [10_000]),
    Row("request", "weir.trace.kept", happens.answered, ["ratio"]),
    Row("authenticate", "weir.tenant.id", happens.answered, ["acme"]),
    Row("authenticate", "weir.key.id", happens.answered, ["key-1"]),
    Row("authenticate", "error.type", happens.nobody, ["invalid_api_key"]),
    Row("read", "weir.request.class", happens.batch, ["batch"]),
    Row("read", "gen_ai.operation.name", happens.two_choices, ["text_completion"]),
    Row("read", "gen_ai.request.model", happens.answered, ["m"]),
    Row("read", "error.type", happens.unreadable, ["invalid_value"]),
    Row("read", "error.type", happens.gone_early, ["client_gone"]),
    Row("wait for a worker", "error.type", happens.no_worker, ["no_worker"]),
    Row("estimate", "weir.estimate.prompt_tokens", happens.answered, [5]),
    Row("estimate", "weir.estimate.output_tokens", happens.answered, [50]),
    Row("estimate", "weir.estimate.counted", happens.answered, [True]),
    Row("estimate", "weir.estimate.counted", happens.fell_back, [False]),
    Row("estimate", "error.type", happens.too_long, ["context_length_exceeded"]),
    Row("admit", "weir.queue_ms", happens.waited, [40]),
    Row("admit", "weir.lease.sequences", happens.two_choices, [2]),
    Row("admit", "weir.lease.reserved_tokens", happens.answered, [55]),
    Row("admit", "error.type", happens.over_a_limit, ["rate_limit_exceeded"]),
    Row("admit", "weir.limit.kind", happens.over_a_limit, ["requests"]),
    Row("place", "weir.queue_ms", happens.waited, [40]),
    Row("place", "weir.worker.id", happens.waited, ["w0"]),
    Row("place", "error.type", happens.no_place, ["no_capacity"]),
    Row("place", "weir.limit.kind", happens.queue_full, ["queue"]),
    Row("parked", "weir.queue_ms", happens.parked, [40]),
    Row("parked", "weir.worker.id", happens.parked, ["w0"]),
    Row("parked", "error.type", happens.parked_in_vain, ["rate_limit_exceeded"]),
    Row("parked", "weir.limit.kind", happens.parked_in_vain, ["sequences"]),
    Row("lease", "weir.lease.sequences", happens.parked, [None, 1]),
    Row("lease", "weir.lease.reserved_tokens", happens.answered, [55]),
    Row("lease", "weir.lease.carried", happens.answered, [False]),
    Row("lease", "error.type", happens.parked, ["rate_limit_exceeded", None]),
    Row("lease", "weir.limit.kind", happens.parked, ["sequences", None]),
    Row("journal", "error.type", happens.not_journaled, ["metering_unavailable"]),
    Row("stream", "weir.outcome", happens.fell_back, ["completed"]),
    Row("stream", "error.type", happens.with_a_bug_in_the_stream, ["RuntimeError"]),
    Row("route", "weir.route.tried", happens.fell_back, [0, 1, 2]),
    Row("route", "weir.worker.id", happens.fell_back, ["w0", "w1", "hosted:acme-ai"]),
    Row("route", "weir.worker.id", happens.engine_refused, ["w0", None]),
    Row("attempt", "gen_ai.operation.name", happens.two_choices, ["text_completion"] * 2),
    Row("attempt", "gen_ai.request.model", happens.fell_back, ["m"] * 3),
    Row("attempt", "gen_ai.request.max_tokens", happens.answered, [50]),
    Row("attempt", "gen_ai.request.max_tokens", happens.two_choices, [100, 100]),
    Row("attempt", "gen_ai.request.stream", happens.fell_back, [True] * 3),
    Row("attempt", "gen_ai.provider.name", happens.fell_back, ["self", "self", "hosted:acme-ai"]),
    Row("attempt", "gen_ai.response.model", happens.fell_back, [None, None, "big-m"]),
    Row("attempt", "gen_ai.response.finish_reasons", happens.answered, [("stop",)]),
    Row("attempt", "gen_ai.response.finish_reasons", happens.odd_end, [("other",)]),
    Row("attempt", "gen_ai.response.time_to_first_chunk", happens.answered, [0.03]),
    Row("attempt", "gen_ai.usage.input_tokens", happens.two_choices, [5, 5]),
    Row("attempt", "gen_ai.usage.output_tokens", happens.two_choices, [1, 1]),
    Row("attempt", "gen_ai.usage.output_tokens", happens.fell_back, [None, None, 1]),
    Row("attempt", "gen_ai.usage.cache_read.input_tokens", happens.answered, [3]),
    Row("attempt", "gen_ai.usage.reasoning.output_tokens", happens.answered, [1]),
    Row("attempt", "server.address", happens.fell_back, ["w0", "w1", "ai.example"]),
    Row("attempt", "server.port", happens.fell_back, [30_000, 30_000, 443]),
    Row("attempt", "weir.worker.id", happens.fell_back, ["w0", "w1", "hosted:acme-ai"]),
    Row("attempt", "weir.attempt", happens.fell_back, [1, 2, 3]),
    Row("attempt", "weir.choice", happens.two_choices, [0, 1]),
    Row(
        "attempt",
        "weir.outcome",
        happens.fell_back,
        ["worker_failed", "worker_failed", "completed"],
    ),
    Row("attempt", "error.type", happens.fell_back, ["worker_unreachable", "500", None]),
    Row("attempt", "error.type", happens.engine_refused, ["400"]),
    Row("count", "weir.usage.source", happens.answered, ["engine_final"]),
    Row("count", "weir.usage.flags", happens.answered, [None]),
    Row("count", "weir.usage.flags", happens.odd_end, [("finish_unknown",)]),
    Row("count", "error.type", BUG_IN["usage"], ["RuntimeError"]),
    Row("record", "error.type", BUG_IN["record"], ["RuntimeError"]),
    Row("settle", "error.type", BUG_IN["settle"], ["RuntimeError"]),
]
_SHAPES = {"weir.request_id"}
"""What has a test of its own."""


def _name(row: Row) -> str:
    scenario = getattr(row.scenario, "__qualname__", "").partition(".")[0]
    return f"{row.span}-{row.attribute}-{scenario}"


@pytest.mark.parametrize("row", ROWS, ids=_name)
async def test_a_span_says(row: Row) -> None:
    """D13 among them: what is billed is on the request's own span, what an attempt used on its."""
    traces = await row.scenario()
    said = [span.attributes.get(row.attribute) for span in traces.named(row.span)]
    assert said == row.values
    assert [type(each) for each in said] == [type(each) for each in row.values]


def test_no_attribute_is_without_a_row() -> None:
    """And no row without an attribute: what is not asserted is not said."""
    rows: dict[str, set[str]] = defaultdict(set)
    for row in ROWS:
        if any(value is not None for value in row.values):
            rows[row.span].add(row.attribute)
    assert {span: names | (_SHAPES & SPANS[span]) for span, names in rows.items()} == SPANS


@pytest.mark.parametrize("scenario", list({row.scenario: row for row in ROWS}))
async def test_nothing_is_said_that_is_not_on_the_list(scenario: Scenario) -> None:
    """Whatever happens; and each span lies within its parent, the request's own came last."""
    traces = await scenario()
    by_id = {span.span_id: span for span in traces.last}
    assert len(by_id) == len(traces.last)
    for span in traces.last:
        assert span.attributes.keys() <= SPANS[table_name(span)]
        assert span.trace_id == traces.root.trace_id
        if span is not traces.root:
            parent = by_id[span.parent_id or 0]
            assert parent.began_ns <= span.began_ns <= span.ended_ns <= parent.ended_ns
    assert happens.BUG not in repr(traces.last)


async def test_a_request_is_found_by_the_id_of_its_answer() -> None:
    """`x-request-id`."""
    gateway = MemoryGateway(events.answer(["a"]))
    traces = traced(gateway)
    answer = await gateway.post()
    said = traces.root.attributes["weir.request_id"]
    assert str(said).encode() == answer.headers[b"x-request-id"]


async def test_who_is_not_billed_has_used_nothing_that_is_billed() -> None:
    """D13: the sum over requests' own spans is what tenants pay for; that somebody did the work is
    on the attempt's."""
    gateway = MemoryGateway([events.content("a", usage=events.counts(5, 1)), WorkerFailed("gone")])
    traces = traced(gateway)
    await gateway.post()
    assert gateway.record.output_tokens == 1
    assert traces.root.attributes["weir.billable"] is False
    assert not [name for name in traces.root.attributes if name.startswith("gen_ai.usage.")]
    assert traces.one("attempt")["gen_ai.usage.output_tokens"] == 1


async def test_the_tree_is_that_of_the_straight_line() -> None:
    """Each step below what it is a step of."""
    traces = await happens.parked()
    assert tree(traces.last) == [
        "request",
        "  authenticate",
        "  read",
        "  estimate",
        "  admit",
        "    place",
        "    lease",
        "    parked",
        "    lease",
        "    journal",
        "  stream",
        "    route",
        "    attempt",
        "  count",
        "  record",
        "  settle",
    ]


@pytest.mark.parametrize(
    ("scenario", "faults"),
    [
        (happens.answered, set()),
        (happens.nobody, set()),
        (happens.over_a_limit, set()),
        (happens.gone_early, set()),
        (happens.parked, set()),
        (happens.fell_back, {"attempt"}),
        (happens.no_place, {"request", "admit", "place"}),
        (BUG_IN["settle"], {"request", "settle"}),
    ],
)
async def test_only_what_is_broken_or_missing_is_an_error(
    scenario: Scenario, faults: set[str]
) -> None:
    """What a tenant may ask and is not given is none, and who left met none: what counts errors by
    spans' status counts ours."""
    traces = await scenario()
    assert {table_name(span) for span in traces.last if span.failed} == faults


async def test_times_are_those_of_the_clocks() -> None:
    """Unix time at the arrival; from there on the clock that never jumps."""
    traces = await happens.answered()
    (attempt,) = traces.named("attempt")
    assert attempt.began_ns == traces.root.began_ns
    assert attempt.ended_ns - attempt.began_ns == 40_000_000
    assert traces.root.began_ns % 1_000_000 == 0


def test_a_lease_that_is_carried_says_so() -> None:
    """It ran under one that was held before, while the store was away."""
    lease = HeldLease("r", "acme", "key-1", "m", 1, 10, 0, (), carried=True)
    assert _of_lease((lease, ()))["weir.lease.carried"] is True
