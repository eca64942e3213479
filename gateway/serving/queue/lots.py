"""What is parked, by what it waits for, and which of it is looked at next."""

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from heapq import heappop, heappush

from gateway.domain.queue.tickets import Band
from gateway.serving.queue.entry import Entry, State
from gateway.serving.queue.scopes import Sight

WOKEN_IN_A_ROW = 4
"""So many looks at what was woken, then one at what is merely due, if something is."""
_Order = tuple[Band, tuple[int, str]]
_LAST: _Order = (Band.BATCH, (2**63, ""))


@dataclass(eq=False)
class Lot:
    """The parked requests of one gateway that have the same limits: of one pool, tenant and key."""

    pool: str
    tenant: str
    key: str
    due_us: int
    """When the limits are looked at next, if nothing wakes it."""
    is_of_key: bool = False
    """As far as is known its key's own limits are short, not its tenant's."""
    parked: dict[Entry, Sight] = field(default_factory=dict)
    _in_order: list[tuple[_Order, Entry]] = field(default_factory=list)

    def add(self, entry: Entry, sight: Sight) -> None:
        """It is parked, or parked again."""
        if entry not in self.parked:
            insort(self._in_order, (order_of(entry), entry), key=_order)
        self.parked[entry] = sight

    def remove(self, entry: Entry) -> bool:
        """Whether it was here."""
        if self.parked.pop(entry, None) is None:
            return False
        del self._in_order[bisect_left(self._in_order, order_of(entry), key=_order)]
        return True

    @property
    def head(self) -> Entry | None:
        """The earliest that is still parked."""
        return next((each for _, each in self._in_order if each.state is State.PARKED), None)

    def before(self, entry: Entry) -> list[Entry]:
        """Those of it that are earlier than this one, the earliest first."""
        end = bisect_left(self._in_order, order_of(entry), key=_order)
        return [each for _, each in self._in_order[:end]]


def is_before(lot: Lot, head: Entry) -> bool:
    """Whether the first of a lot is earlier than this one."""
    return _order_of_head(lot) < order_of(head)


def order_of(entry: Entry) -> _Order:
    """Interactive first, then the earliest deadline. Stays as it is while it is parked."""
    return entry.asked.band, entry.order


def _order(item: tuple[_Order, Entry]) -> _Order:
    return item[0]


class _Round:
    """The lots of one tenant that were woken. The earliest head goes first; one that had no room
    goes behind the others, which were woken by the same."""

    def __init__(self) -> None:
        self.lots: dict[Lot, None] = {}
        self.missed: set[Lot] = set()

    def pop(self) -> Lot:
        if self.missed.issuperset(self.lots):
            self.missed.clear()
        lot = min((lot for lot in self.lots if lot not in self.missed), key=_order_of_head)
        del self.lots[lot]
        return lot


class Turns:
    """Whose turn it is. What was woken goes before what is merely due, one lot of each tenant after
    the other; what is due for longest goes before other that is due."""

    def __init__(self) -> None:
        self._woken: dict[str, _Round] = {}
        self._due: list[tuple[int, int, Lot]] = []
        self._number = self._in_a_row = 0

    def wake(self, lot: Lot) -> None:
        """It may have room."""
        self._woken.setdefault(lot.tenant, _Round()).lots[lot] = None

    def put(self, lot: Lot, due_us: int) -> None:
        """It is due then, and no other time that was said before."""
        lot.due_us = due_us
        self._number += 1
        heappush(self._due, (due_us, self._number, lot))

    def missed(self, lot: Lot) -> None:
        """It was woken, and has no room."""
        found = self._woken.get(lot.tenant)
        if found is not None:
            found.missed.add(lot)

    def next(self, now_us: int) -> tuple[Lot, bool] | None:
        """Who is looked at now, if anybody, and whether it was woken; it has no turn any more."""
        due = self._first_due()
        is_due = due is not None and due.due_us <= now_us
        if self._woken and not (is_due and self._in_a_row >= WOKEN_IN_A_ROW):
            self._in_a_row += 1
            return self._next_woken(), True
        self._in_a_row = 0
        if due is None or not is_due:
            return None
        heappop(self._due)
        self._forget(due)
        return due, False

    def next_us(self) -> int | None:
        """When the next is due."""
        due = self._first_due()
        return None if due is None else due.due_us

    def end(self, lot: Lot) -> None:
        """Nothing of it is parked any more."""
        lot.due_us = -1
        self._forget(lot)

    def _next_woken(self) -> Lot:
        tenant = next(iter(self._woken))
        found = self._woken.pop(tenant)
        lot = found.pop()
        if found.lots:
            self._woken[tenant] = found
        return lot

    def _forget(self, lot: Lot) -> None:
        found = self._woken.get(lot.tenant)
        if found is not None and lot in found.lots:
            del found.lots[lot]
            if not found.lots:
                del self._woken[lot.tenant]

    def _first_due(self) -> Lot | None:
        """The heap holds some times that were put off since."""
        while self._due and self._due[0][0] != self._due[0][2].due_us:
            heappop(self._due)
        return self._due[0][2] if self._due else None


def _order_of_head(lot: Lot) -> _Order:
    head = lot.head
    return _LAST if head is None else order_of(head)
