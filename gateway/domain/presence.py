"""Who has to be waited for before all that was recorded by an instant can be counted."""

from collections.abc import Mapping
from dataclasses import dataclass

GONE_MS = 60_000
"""A gateway that was not seen for so long no longer counts."""
HEARD_MS = 3_000
"""Three times the longest that a gateway which can reach the store stays silent: a list that is
younger may lack one."""
FORGET_MS = 24 * 3_600_000
NOT_SHIPPED = -1
NOT_HEARD = "those not heard of yet"


@dataclass(frozen=True)
class Standing:
    """A gateway as the store has seen it, in instants of the store's time."""

    seen_ms: int
    through_ms: int
    """All that it had recorded by then is in Postgres."""
    journal: "Heartbeat | None" = None
    """How far its journal is; None where it never said, as gateways of an older release."""


@dataclass(frozen=True)
class Heartbeat:
    """How far a gateway's journal is, and how much of it is in Postgres."""

    boot: int
    durable_seq: int
    """The last number of that boot that is on its disk."""
    open_count: int
    """Requests that it has admitted by that number and that have not ended."""
    shipped_seq: int
    """The last number of that boot that is in Postgres; NOT_SHIPPED while earlier boots are not."""

    @property
    def is_shipped(self) -> bool:
        """Whether nothing that was durable then is missing in Postgres."""
        return self.shipped_seq >= self.durable_seq


def heartbeat(
    boot: int, durable_seq: int, *, open_count: int, shipped: tuple[int, int] | None
) -> Heartbeat:
    """What a gateway says that writes `boot` and has shipped up to a place (boot and number; None:
    it does not know)."""
    shipped_boot, shipped_seq = shipped or (0, 0)
    in_this_boot = shipped is not None and shipped_boot == boot
    return Heartbeat(boot, durable_seq, open_count, shipped_seq if in_this_boot else NOT_SHIPPED)


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


def present(gateways: Mapping[str, Standing], *, now_ms: int) -> tuple[str, ...]:
    """Gateways that count: of one that is silent for longer neither store is seen, and it refuses
    everything, or it follows Postgres."""
    return tuple(
        name for name, gateway in sorted(gateways.items()) if gateway.seen_ms > now_ms - GONE_MS
    )


def forgotten(gateways: Mapping[str, Standing], *, now_ms: int) -> tuple[str, ...]:
    """Gateways that were not seen for a day: nobody need keep them in the list."""
    return tuple(
        name for name, gateway in gateways.items() if gateway.seen_ms <= now_ms - FORGET_MS
    )
