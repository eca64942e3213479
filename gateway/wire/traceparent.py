"""W3C Trace Context: what a client says of the trace it is in, and what a worker is told.

https://www.w3.org/TR/trace-context/. Only `traceparent` is read and written: `tracestate` and
`baggage` are other systems' words, and of a client's none is passed on.
"""

import re
from typing import NamedTuple

HEADER = b"traceparent"
_FORM = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_VERSION = b"00"
_NO_VERSION = b"ff"


class RemoteSpan(NamedTuple):
    """A span of somebody else's: what it says of sampling is not for us to follow."""

    trace_id: int
    span_id: int


def read_traceparent(value: bytes | None) -> RemoteSpan | None:
    """The client's span; None where none is named, or in no form that the standard has. A version
    that is newer than ours may have more behind what is known."""
    if value is None:
        return None
    found = _FORM.fullmatch(value.strip(b" \t"))
    if found is None or found[1] == _NO_VERSION or (found[1] == _VERSION and found[4]):
        return None
    span = RemoteSpan(int(found[2], 16), int(found[3], 16))
    return span if span.trace_id and span.span_id else None


def traceparent(trace_id: int, span_id: int, *, sampled: bool) -> str:
    """The header's value for a request that this span makes."""
    return f"00-{trace_id:032x}-{span_id:016x}-{sampled:02x}"
