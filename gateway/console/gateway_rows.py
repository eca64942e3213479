"""The gateways as pages show them: who is heard of, and what each runs. Pure."""

from typing import Any

from gateway.adapters.presence import Census
from gateway.domain.presence import GONE_MS, HEARD_MS, Standing


def gateway_rows(census: Census) -> list[dict[str, Any]]:
    """All that are known by their ids, as they stand in "not confirmed yet by". `running` is None
    where a gateway never said, or is gone: what it ran nobody knows."""
    return [_row(name, each, census.now_ms) for name, each in sorted(census.standings.items())]


def _row(name: str, standing: Standing, now_ms: int) -> dict[str, Any]:
    silent_ms = max(now_ms - standing.seen_ms, 0)
    is_gone = silent_ms >= GONE_MS
    kind, state = ("good", "heard of")
    if is_gone:
        kind, state = ("bad", "gone: others write what it ran")
    elif silent_ms > HEARD_MS:
        kind, state = ("warn", "silent")
    journal = standing.journal
    return {
        "id": name,
        "kind": kind,
        "state": state,
        "silent_ms": silent_ms,
        "running": None if journal is None or is_gone else journal.open_count,
        "is_shipped": None if journal is None else journal.is_shipped,
    }
