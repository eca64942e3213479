"""What waits in a pool's queue, and what holds a place in it."""

from dataclasses import dataclass, replace
from enum import IntEnum

TAKEN_BACK_MAX = 3
"""A batch request that was taken back so often counts as interactive in order."""
TAKEN_BACK_WAIT_MS = 30_000
"""And waits for at least so long again, whatever it has waited before: it was us."""


class Band(IntEnum):
    """The lower goes first."""

    INTERACTIVE = 0
    BATCH = 1


@dataclass(frozen=True)
class Ticket:
    """A request that wants a place. Times are the store's, in Unix ms."""

    id: str
    tenant: str
    gateway: str
    """Who is told of its grant."""
    band: Band
    sequences: int
    need_tokens: int
    """KV tokens that it is expected to come to hold on its worker: prompts and output together."""
    cost: int
    """Weighted tokens that it is expected to cost (`fairness.weighted_tokens`)."""
    weight: int
    """The tenant's share, from 1."""
    entered_ms: int
    deadline_ms: int
    """It does not want to wait for longer."""
    promote_ms: int
    """A batch request that still waits then goes before all other batch."""
    taken_back: int = 0
    lot: str = ""
    """The tenant's of one lot have the same limits: they wait for these together."""

    @property
    def order_band(self) -> Band:
        """The band that it waits in."""
        return Band.INTERACTIVE if self.taken_back >= TAKEN_BACK_MAX else self.band

    @property
    def order(self) -> tuple[int, str]:
        """Among the tenant's own: earliest deadline first."""
        return self.deadline_ms, self.id

    def is_promoted(self, now_ms: int) -> bool:
        """Whether it goes before other batch."""
        return self.order_band is Band.BATCH and self.promote_ms <= now_ms

    def came_back(self, now_ms: int) -> "Ticket":
        """As it waits again after its place was taken back."""
        deadline_ms = max(self.deadline_ms, now_ms + TAKEN_BACK_WAIT_MS)
        return replace(self, taken_back=self.taken_back + 1, deadline_ms=deadline_ms)


class PlaceState(IntEnum):
    """How far a place is used."""

    GRANTED = 0
    """Its gateway was told, and has not taken it up yet."""
    HELD = 1
    """Taken up; no token of its answer has come."""
    BEGAN = 2
    """A token of its answer has come: it is not taken back any more."""
    TAKEN_BACK = 3
    """Its gateway was told to give it back."""


@dataclass
class Place:
    """Room on a worker, for one request."""

    ticket: Ticket
    worker: str
    state: PlaceState
    granted_ms: int
    lapses_ms: int
    """Nobody renewed it by then: it is free."""
    is_floor: bool = False
    """Batch that was granted as the floor's share: no interactive request has it taken back."""


@dataclass(frozen=True)
class Granted:
    """The request has a place on this worker."""

    worker: str


@dataclass(frozen=True)
class Queued:
    """The request waits. `own_ahead` are its tenant's own that go before it, `ahead_tokens` the
    weighted tokens of all that do, as things are now; `wait_ms` is what those are expected to take,
    None where nothing is known of the pool's speed."""

    own_ahead: int
    ahead_tokens: int
    wait_ms: int | None


@dataclass(frozen=True)
class StillQueued:
    """The request waits, and where it stands was not asked for."""


@dataclass(frozen=True)
class QueueFull:
    """The tenant has as many others waiting as it may, parked ones included. Nothing is held."""

    waiting: int


@dataclass(frozen=True)
class TooLong:
    """It would not be granted before its deadline. Nothing is held."""

    wait_ms: int


@dataclass(frozen=True)
class NoWorker:
    """No worker of the pool is well, so nobody can tell when it would be granted. Nothing is held.
    A store that came back empty says so until the first report."""


@dataclass(frozen=True)
class Parked:
    """It waits for its own tenant's limits, and for nobody else."""


@dataclass(frozen=True)
class TakenBack:
    """Its place is to be given back: an interactive request waits for it."""


@dataclass(frozen=True)
class Unknown:
    """The store knows no such request: it lapsed, its deadline passed, or it was lost."""


Answer = (
    Granted | Queued | StillQueued | QueueFull | TooLong | NoWorker | Parked | TakenBack | Unknown
)


@dataclass(frozen=True)
class Message:
    """What a gateway is told: of a grant, that a place is to be given back, or that the limits for
    which one is parked may have room."""

    gateway: str
    ticket_id: str
    worker: str
    is_grant: bool
    is_look: bool = False
    """It is parked, on no worker, and something of its tenant has ended."""
