"""Requests of a straight line in memory, and the spans that they leave."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_gateway import MemoryGateway

from gateway.domain.latency import Targets
from gateway.domain.tenant import RequestClass
from gateway.serving.tracing import Tracing
from gateway.telemetry.trace_keeping import Keeping
from gateway.telemetry.trace_names import ATTEMPT, OPERATION
from gateway.telemetry.tracing import SpanData

NAMES_ON_THE_WIRE = {"server": OPERATION, "client": ATTEMPT}


@dataclass
class Traces:
    """What was exported, a list a request."""

    kept: list[Sequence[SpanData]] = field(default_factory=list)

    @property
    def last(self) -> Sequence[SpanData]:
        """The spans of the request that ended last."""
        return self.kept[-1]

    @property
    def root(self) -> SpanData:
        """Of the same."""
        return self.last[-1]

    def named(self, name: str) -> list[SpanData]:
        """Spans of the last by the name in the table."""
        return [span for span in self.last if table_name(span) == name]

    def one(self, name: str) -> dict[str, Any]:
        """What the only span of that name says."""
        (span,) = self.named(name)
        return dict(span.attributes)


def table_name(span: SpanData) -> str:
    """A span's name as `trace_names.SPANS` has it."""
    return NAMES_ON_THE_WIRE.get(span.kind, span.name)


def traced(
    gateway: MemoryGateway,
    *,
    ratio_permille: int = 1000,
    kept_per_s: int = 0,
    context: str = "continue",
    targets: dict[RequestClass, Targets] | None = None,
) -> Traces:
    """Trace its requests from now on, all of them unless told otherwise."""
    traces = Traces()
    keeping = Keeping(gateway.clock, ratio_permille=ratio_permille, kept_per_s=kept_per_s)
    gateway.completions._tracing = Tracing(
        gateway.clock, keeping, traces.kept.append, context=context, targets=targets
    )
    return traces


def tree(spans: Sequence[SpanData]) -> list[str]:
    """The spans as indented names, each below its parent, in the order in which they began."""

    def below(parent_id: int | None, depth: int) -> Iterator[str]:
        for span in sorted(spans, key=lambda each: each.began_ns):
            if span.parent_id == parent_id:
                yield "  " * depth + table_name(span)
                yield from below(span.span_id, depth + 1)

    return list(below(spans[-1].parent_id, 0))
