"""Whether what is in Postgres is all that there is to know of a time.

A record reaches Postgres within a second of its request's end. What may lack is what a gateway has
recorded and not shipped: one that cannot reach Postgres, or one that is gone with its journal.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gateway.domain.presence import GONE_MS, Standing

LATE_MS = 10_000
"""Who ships later than that is behind; as long as that, what has just ended is not missed."""
NEVER = 0
"""What a gateway that has just begun has shipped through."""
LASTS_MS_MAX = 24 * 3_600_000
"""No request waits and runs for so long: what one recorded at its end began later than that before
it."""


@dataclass(frozen=True)
class Completeness:
    """How far Postgres is, over every gateway that is known."""

    through_ms: int | None
    """All that had ended by then is in Postgres; None where that is not known."""
    now_ms: int | None
    """When this was so, by the store's time; None where the store was away."""
    behind: tuple[str, ...] = ()
    """Gateways that are late, in order."""

    @property
    def lag_ms(self) -> int | None:
        """How long ago the oldest end may have been that Postgres lacks; None: not known."""
        if self.through_ms is None or self.now_ms is None:
            return None
        return max(0, self.now_ms - self.through_ms)

    def covers(self, until_ms: int | None) -> bool:
        """Whether nothing is missing of what was admitted before `until_ms` (None: up to now) and
        has ended: but for the last seconds of a time that is not over."""
        if self.through_ms is None or self.now_ms is None:
            return False
        if not self.behind:
            return True
        return until_ms is not None and until_ms <= self.through_ms - LASTS_MS_MAX


NOT_KNOWN = Completeness(None, None)


def completeness(
    gateways: Mapping[str, Standing], *, now_ms: int, lacking: Collection[str] = ()
) -> Completeness:
    """Over a whole list of gateways, and those of which only Postgres knows that it lacks
    something: how far these had shipped when they were last seen nobody remembers.

    A gateway that is gone counts unless all that it had recorded is in Postgres and nothing of it
    was open; one that lives counts always.
    """
    through_ms = {
        name: min(standing.through_ms, now_ms)
        for name, standing in gateways.items()
        if not _is_done_with(standing, now_ms)
    }
    through_ms |= {name: NEVER for name in lacking if name not in gateways}
    behind = sorted(name for name, instant in through_ms.items() if now_ms - instant > LATE_MS)
    least_ms = min(through_ms.values(), default=now_ms)
    return Completeness(None if least_ms == NEVER else least_ms, now_ms, tuple(behind))


def _is_done_with(standing: Standing, now_ms: int) -> bool:
    if standing.seen_ms > now_ms - GONE_MS:
        return False
    journal = standing.journal
    return journal is not None and journal.is_shipped and journal.open_count == 0
