"""All requests of this gateway that wait for a place or hold one, and how many those are."""

from collections.abc import Callable, Iterator
from itertools import islice

from gateway.domain.queue.tickets import Band
from gateway.serving.queue.entry import Entry, State
from gateway.serving.withdrawal import Withdrawn
from gateway.telemetry import queue as metrics

_GAUGES = {State.WAITING: metrics.WAITING, State.PARKED: metrics.PARKED}

LOOKED_AT = 64


class Book:
    """By request id. The only place that changes an entry's state."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._waiting: dict[tuple[str, str], dict[str, Entry]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def get(self, request_id: str) -> Entry | None:
        """The entry of a request that is still here."""
        return self._entries.get(request_id)

    def add(self, entry: Entry) -> None:
        """It asks."""
        self._entries[entry.asked.id] = entry

    def move(self, entry: Entry, state: State) -> None:
        """It is so far now."""
        if entry.state is State.GONE or state is entry.state:
            return
        self._count(entry, -1)
        entry.state = state
        self._count(entry, 1)
        if state is State.GONE:
            self._entries.pop(entry.asked.id, None)

    def waiting_of(self, pool: str, tenant: str) -> int:
        """Requests of the tenant that wait here, parked ones included."""
        return len(self._waiting.get((pool, tenant), ()))

    def first_wait_ms(self, pool: str, tenant: str) -> int | None:
        """The shortest wait that is predicted for the tenant's requests that wait here, of those
        that came first: it is asked with each refusal."""
        first = islice(self._waiting.get((pool, tenant), {}).values(), LOOKED_AT)
        standings = [entry.standing for entry in first if entry.standing is not None]
        waits = [each.wait_ms for each in standings if each.wait_ms is not None]
        return min(waits, default=None)

    def stop_interactive(self, error: Callable[[], Exception]) -> None:
        """Interactive requests that wait do so no longer, each told an error of its own."""
        for entry in self:
            if entry.is_waiting and entry.asked.band is Band.INTERACTIVE:
                entry.stop(error())

    def stop_all(self, error: Callable[[], Exception]) -> None:
        """Nobody waits any more: neither who has no place yet, nor who will have none again."""
        for entry in self:
            entry.stop(error())

    def end_withdrawn(self, withdrawn: Withdrawn) -> None:
        """Those that it concerns wait no more, nor will again."""
        for entry in self:
            refusal = withdrawn.refusal(entry.asked.tenant, entry.asked.key)
            if refusal is not None:
                entry.stop(refusal)

    def _count(self, entry: Entry, by: int) -> None:
        if not entry.is_waiting:
            return
        asked = entry.asked
        label = asked.band.name.lower()
        gauge = _GAUGES[entry.state]
        gauge.labels(request_class=label).inc(by)
        if entry.state is State.WAITING:
            metrics.WAITING_TOKENS.labels(request_class=label).inc(by * asked.need_tokens)
        key = asked.pool, asked.tenant
        of_tenant = self._waiting.setdefault(key, {})
        if by > 0:
            of_tenant[asked.id] = entry
        else:
            del of_tenant[asked.id]
        if not of_tenant:
            del self._waiting[key]
