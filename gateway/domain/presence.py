"""Who has to be waited for before all that was recorded by an instant can be counted."""

from collections.abc import Mapping
from dataclasses import dataclass

GONE_MS = 60_000
"""A gateway that was not seen for so long no longer counts."""
HEARD_MS = 3_000
"""Three times the longest that a gateway which can reach the store stays silent: a list that is
younger may lack one."""
FORGET_MS = 24 * 3_600_000
NOT_HEARD = "those not heard of yet"


@dataclass(frozen=True)
class Standing:
    """A gateway as the store has seen it, in instants of the store's time."""

    seen_ms: int
    through_ms: int
    """All that it had recorded by then is in Postgres."""


def is_whole(*, began_ms: int | None, born_ms: int, now_ms: int) -> bool:
    """Whether every gateway has had time to enter the list, which began at `began_ms` (None: there
    is none) in a store that came back empty at `born_ms` (0: it never lost anything, so whoever
    served before the list began is not to be expected in it)."""
    if began_ms is None:
        return False
    return born_ms == 0 or now_ms >= began_ms + HEARD_MS


def waited_for(
    gateways: Mapping[str, Standing], instant_ms: int, *, now_ms: int
) -> tuple[str, ...]:
    """Gateways of a whole list that count and may have recorded something by `instant_ms` that is
    not in Postgres. Empty only where all have shipped through it."""
    return tuple(
        name
        for name, gateway in sorted(gateways.items())
        if gateway.seen_ms > now_ms - GONE_MS and gateway.through_ms < instant_ms
    )


def forgotten(gateways: Mapping[str, Standing], *, now_ms: int) -> tuple[str, ...]:
    """Gateways that were not seen for a day: nobody need keep them in the list."""
    return tuple(
        name for name, gateway in gateways.items() if gateway.seen_ms <= now_ms - FORGET_MS
    )
