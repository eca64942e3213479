"""Tickets, workers and pools of the queue's tests; what a test does not care about is filled in."""

from typing import Any

from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.pool import Pool
from gateway.domain.queue.tickets import Band, Ticket

HOUR_MS = 3_600_000
TTL_MS = 15_000
UNBOUNDED = 10**12


def ticket(name: str, tenant: str = "a", **other: Any) -> Ticket:
    """Interactive, one sequence, ten tokens, an hour to wait."""
    entered_ms = other.get("entered_ms", 0)
    filled: dict[str, Any] = {
        "gateway": "g1",
        "band": Band.INTERACTIVE,
        "sequences": 1,
        "need_tokens": 10,
        "cost": 10,
        "weight": 1,
        "entered_ms": entered_ms,
        "deadline_ms": entered_ms + HOUR_MS,
    } | other
    filled.setdefault("promote_ms", filled["deadline_ms"] - 1)
    return Ticket(id=name, tenant=tenant, **filled)


def batch(name: str, tenant: str = "a", **other: Any) -> Ticket:
    """The same as batch."""
    return ticket(name, tenant, band=Band.BATCH, **other)


def worker(
    name: str = "w",
    sequences: int = 2,
    batch_sequences: int | None = None,
    tokens: int = UNBOUNDED,
    well_until_ms: int = 10**15,
) -> WorkerRoom:
    """Without a ceiling on memory, the same for both bands, and well for ever."""
    most = sequences if batch_sequences is None else batch_sequences
    return WorkerRoom(name, sequences, most, tokens, well_until_ms)


def pool(*workers: WorkerRoom, floor_permille: int = 0) -> Pool:
    """With these workers, nothing in it."""
    made = Pool(TTL_MS, floor_permille)
    made.report_all(workers or [worker()], now_ms=0)
    return made


def enter(pool: Pool, *tickets: Ticket, now_ms: int = 0) -> None:
    """All ask for a place, in this order."""
    for each in tickets:
        pool.enter(each, max_queued=10**6, now_ms=now_ms)


def granted(pool: Pool) -> list[str]:
    """Whom messages told of a grant since the last look."""
    names = [each.ticket_id for each in pool.messages if each.is_grant]
    pool.messages.clear()
    return names
