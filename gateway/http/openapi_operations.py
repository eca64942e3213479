"""What a handler says of itself for the OpenAPI document, beside its own code.

`opt=described(...)` on a handler names its body and its answer; path, method, parameters, status
and summary come from the handler itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OPERATION_OPTION = "operation"


@dataclass(frozen=True)
class Operation:
    """One operation: `answer` and `body` are types, None where there is none."""

    answer: Any = None
    body: Any = None
    body_required: bool = True
    media_type: str = "application/json"
    """Of an answer that succeeds."""
    name: str | None = None
    summary: str | None = None
    """Of a handler below Litestar, whose function says neither; it takes POST alone."""
    statuses: Mapping[int, str] = field(default_factory=dict)
    """More statuses that carry `answer`, and what they mean."""
    may_be_absent: bool = False
    """Whether a path that names nothing may answer 404: there is one such thing, or none yet."""
    documents: Any = None
    """The type of the JSON file, where an ending of the path asks for one; then there are files as
    CSV and PDF too."""


def described(
    answer: Any = None,
    *,
    body: Any = None,
    body_required: bool = True,
    media_type: str = "application/json",
    name: str | None = None,
    summary: str | None = None,
    statuses: Mapping[int, str] | None = None,
    documents: Any = None,
    may_be_absent: bool = False,
) -> dict[str, Any]:
    """The `opt` of a handler."""
    operation = Operation(
        answer,
        body,
        body_required,
        media_type,
        name,
        summary,
        statuses=statuses or {},
        documents=documents,
        may_be_absent=may_be_absent,
    )
    return {OPERATION_OPTION: operation}
