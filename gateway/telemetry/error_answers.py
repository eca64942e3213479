"""Counts and logs an answer that is an error, whichever part of the gateway gives it."""

from gateway.telemetry import metrics
from gateway.telemetry.request_lines import log_error_answer

SURFACES = ("v1", "admin", "billing", "console")
OTHER = "other"
"""Of what is below none of these, and of what is no request."""


def surface_of(path: str) -> str:
    """Which part of the gateway a path is in, as the router reads it: it leaves out doubled
    slashes."""
    first = path.lstrip("/").partition("/")[0]
    return first if first in SURFACES else OTHER


def tell_error(surface: str, status: int, code: str, *, is_fault: bool | None = None) -> None:
    """An answer of this status and code was given, or would have been. `is_fault`: whether it is a
    failure of ours; None: where it is a 5xx."""
    metrics.ERRORS.labels(code, surface).inc()
    log_error_answer(status, code, is_fault=status >= 500 if is_fault is None else is_fault)
