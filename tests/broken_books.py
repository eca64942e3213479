"""How tests read what `weir reconcile --json` says of books that they have broken."""

from typing import Any

Json = dict[str, Any]
TOKENS = 32
"""Of each record of these books, prompt and output."""


def named(findings: list[Json]) -> list[tuple[str | None, int, str]]:
    """Request, size and unit of each."""
    return [(each["request_id"], each["size"], each["unit"]) for each in findings]


def terms(view: Json, check: str) -> dict[str, int]:
    """A check's terms."""
    (found,) = [each for each in view["checks"] if each["check"] == check]
    sizes: dict[str, int] = found["terms"]
    return sizes
