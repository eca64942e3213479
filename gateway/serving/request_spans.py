"""The spans of one request, made of its steps once it has ended and its trace is kept. Pure.

D13: the request's own span carries the sum that is billed, each attempt's its own use; so what is
billed is the sum over spans of kind `server`, what engines did the sum over those of kind `client`.
"""

import random
from collections.abc import Callable, Iterator

from billing.domain.usage_record import UsageRecord
from gateway.serving.admit import Admission
from gateway.serving.arrival import Arrival
from gateway.serving.asking import Asking
from gateway.serving.attempt_span import OPERATIONS, finish_reasons
from gateway.serving.authenticate import Caller, request_class
from gateway.serving.estimate import Estimate
from gateway.serving.ports import HeldLease
from gateway.serving.relay import Ending
from gateway.serving.upstream_body import PATHS
from gateway.telemetry import trace_names as names
from gateway.telemetry.tracing import Attributes, Failure, RequestTrace, SpanData, Step, Value

_NS_A_US, _NS_A_MS = 1_000, 1_000_000


def spans_of(trace: RequestTrace, arrival: Arrival, kept: str) -> list[SpanData]:
    """All of them, the request's own last: who receives it has the others. `kept` says why there
    are any."""
    offset_ns = trace.at_ms * _NS_A_MS - trace.at_us * _NS_A_US
    root_id = _fresh_id()
    remote = trace.remote
    root = SpanData(
        name=f"POST {PATHS[arrival.endpoint]}",
        kind="server",
        trace_id=trace.trace_id,
        span_id=root_id,
        parent_id=None if remote is None else remote.span_id,
        parent_is_remote=remote is not None,
        began_ns=trace.at_us * _NS_A_US + offset_ns,
        ended_ns=trace.now_us() * _NS_A_US + offset_ns,
        attributes=dict(_of_request(trace, arrival, kept)),
        failed=trace.failure is not None and trace.failure.is_fault,
        link=trace.link,
    )
    for step in trace.steps:
        step.span_id = step.span_id or _fresh_id()
    return [*(_span(step, root, offset_ns) for step in trace.steps), root]


def _span(step: Step, root: SpanData, offset_ns: int) -> SpanData:
    attributes = dict(step.attributes)
    tell = _TOLD.get(step.name)
    if tell is not None:
        attributes |= tell(step.result)
    if step.failure is not None:
        attributes |= _of_failure(step.failure)
    is_attempt = step.name == names.ATTEMPT
    name = step.name
    if is_attempt and step.attributes:
        name = f"{attributes['gen_ai.operation.name']} {attributes['gen_ai.request.model']}"
    return SpanData(
        name=name,
        kind="client" if is_attempt else "internal",
        trace_id=root.trace_id,
        span_id=step.span_id,
        parent_id=root.span_id if step.parent is None else step.parent.span_id,
        parent_is_remote=False,
        began_ns=step.began_us * _NS_A_US + offset_ns,
        # One that is still open is cut off where its request ends.
        ended_ns=step.ended_us * _NS_A_US + offset_ns if step.ended_us else root.ended_ns,
        attributes=attributes,
        failed=step.failure is not None and step.failure.is_fault,
    )


def _fresh_id() -> int:
    return random.getrandbits(64) or 1


def _of_failure(failure: Failure) -> dict[str, Value]:
    said: dict[str, Value] = {"error.type": failure.code}
    if failure.limit is not None:
        said["weir.limit.kind"] = failure.limit
    return said


def _of_request(trace: RequestTrace, arrival: Arrival, kept: str) -> Iterator[tuple[str, Value]]:
    path = PATHS[arrival.endpoint]
    yield "http.request.method", "POST"
    yield "http.route", path
    yield "url.path", path
    yield "url.scheme", "http"
    if arrival.connection.status is not None:
        yield "http.response.status_code", arrival.connection.status
    yield "gen_ai.operation.name", OPERATIONS[arrival.endpoint]
    yield "weir.request_id", str(arrival.request_id)
    yield "weir.trace.kept", kept
    for caller in trace.results(Caller):
        yield from _of_caller(caller).items()
    for asking in trace.results(Asking):
        yield from _of_asking(asking).items()
        yield "gen_ai.request.stream", asking.request.stream
        yield "gen_ai.request.choice.count", asking.request.choices_per_prompt
        if asking.request.max_tokens is not None:
            yield "gen_ai.request.max_tokens", asking.request.max_tokens
    for record in trace.results(UsageRecord):
        yield from _of_record(record)
    if trace.failure is not None:
        yield from _of_failure(trace.failure).items()


def _of_record(record: UsageRecord) -> Iterator[tuple[str, Value]]:
    yield "gen_ai.provider.name", record.provider
    yield "weir.outcome", record.outcome.value
    yield "weir.billable", record.billable
    yield "weir.attempts", len(record.attempts)
    yield "weir.queue_ms", record.queue_ms
    if record.ttft_ms is not None:
        yield "weir.ttft_ms", record.ttft_ms
        yield "gen_ai.response.model", record.model
    if record.tpot_us is not None:
        yield "weir.tpot_us", record.tpot_us
    if record.finish_reason is not None:
        yield "gen_ai.response.finish_reasons", finish_reasons([*record.finish_reason.split(",")])
    if record.billable:
        yield "gen_ai.usage.input_tokens", record.prompt_tokens
        yield "gen_ai.usage.cache_read.input_tokens", record.cached_prompt_tokens
        yield "gen_ai.usage.output_tokens", record.output_tokens
        yield "gen_ai.usage.reasoning.output_tokens", record.reasoning_tokens


def _of_caller(result: object) -> Attributes:
    if not isinstance(result, Caller):
        return {}
    return {"weir.tenant.id": result.tenant.id, "weir.key.id": result.key.id}


def _of_asking(result: object) -> Attributes:
    if not isinstance(result, Asking):
        return {}
    asked = request_class(result.caller, asked_batch=result.request.asked_batch)
    return {
        "gen_ai.operation.name": OPERATIONS[result.request.endpoint],
        "gen_ai.request.model": result.model.id,
        "weir.request.class": asked.value,
    }


def _of_estimate(result: object) -> Attributes:
    if not isinstance(result, Estimate):
        return {}
    return {
        "weir.estimate.prompt_tokens": result.prompt_tokens,
        "weir.estimate.output_tokens": result.output_tokens,
        "weir.estimate.counted": result.exact,
    }


def _of_admission(result: object) -> Attributes:
    if not isinstance(result, Admission):
        return {}
    admitted = result.admitted
    return {
        "weir.queue_ms": admitted.queue_ms,
        "weir.lease.sequences": admitted.sequences,
        "weir.lease.reserved_tokens": admitted.reserved_tokens,
    }


def _of_lease(result: object) -> Attributes:
    lease = result[0] if isinstance(result, tuple) else None
    if not isinstance(lease, HeldLease):
        return {}
    return {
        "weir.lease.sequences": lease.sequences,
        "weir.lease.reserved_tokens": lease.reserved_tokens,
        "weir.lease.carried": lease.carried,
    }


def _of_ending(result: object) -> Attributes:
    return {"weir.outcome": result.outcome.value} if isinstance(result, Ending) else {}


def _of_count(result: object) -> Attributes:
    if not isinstance(result, UsageRecord):
        return {}
    said: dict[str, Value] = {"weir.usage.source": result.usage_source.value}
    if result.usage_flags:
        said["weir.usage.flags"] = tuple(str(flag) for flag in result.usage_flags)
    return said


_TOLD: dict[str, Callable[[object], Attributes]] = {
    names.AUTHENTICATE: _of_caller,
    names.READ: _of_asking,
    names.ESTIMATE: _of_estimate,
    names.ADMIT: _of_admission,
    names.LEASE: _of_lease,
    names.STREAM: _of_ending,
    names.COUNT: _of_count,
}
"""What is said of a step's result; of the others nothing is."""
