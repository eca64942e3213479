"""Tenants whose own limits refused them a moment ago.

A place that is had only to hear that its tenant's limits have no room idles for as long as that
takes, and costs its tenant no turn. A tenant that goes on asking would idle much of a pool so. So
for a second after a refusal its limits are looked at first; nothing is refused from memory.
"""

from gateway.errors import InvalidRequest, LimitReached, Overloaded, QuotaExceeded, WeirError
from gateway.serving.ports import Clock
from gateway.serving.queue.entry import Entry
from gateway.serving.queue.scopes import Sight

REMEMBERED_MS = 1_000
OWN = (LimitReached, QuotaExceeded, InvalidRequest)
"""What limits say: no room for now, none this month, none ever."""


class LatelyRefused:
    """Of one gateway, by tenant: a refused key's siblings are asked first too."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_us: dict[str, tuple[int, bool]] = {}
        """In the order of their ends, and whether it was its budget."""

    def note(self, tenant: str, error: BaseException) -> None:
        """It was told this; what is no refusal of its limits is no matter."""
        if not isinstance(error, OWN) or (
            isinstance(error, LimitReached) and error.type == "queue"
        ):
            return
        now_us = self._clock.monotonic_us()
        self._forget(now_us)
        self._until_us.pop(tenant, None)
        until_us = now_us + REMEMBERED_MS * 1000
        self._until_us[tenant] = until_us, isinstance(error, QuotaExceeded)

    async def look(self, entry: Entry, limits: Sight) -> WeirError | None:
        """What the limits of a tenant that was just refused tell this request; None where it was
        not, where they have room, or nobody knows. Raises what `Sight` does otherwise."""
        tenant = entry.asked.tenant
        until_us, of_budget = self._until_us.get(tenant, (0, False))
        if until_us <= self._clock.monotonic_us():
            return None
        try:
            refused = await limits.refusal(of_budget=of_budget)
        except Overloaded:
            return None
        if refused is not None:
            self.note(tenant, refused)
        return refused

    def _forget(self, now_us: int) -> None:
        while self._until_us:
            tenant = next(iter(self._until_us))
            if self._until_us[tenant][0] > now_us:
                return
            del self._until_us[tenant]
