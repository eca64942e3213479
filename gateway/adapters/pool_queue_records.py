"""What the queue's scripts are given and reply, as the domain has it."""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import cast

import msgspec

from gateway.adapters.pool_queue_shares import shares
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.tickets import (
    Answer,
    Band,
    Granted,
    Message,
    NoWorker,
    Parked,
    Queued,
    QueueFull,
    StillQueued,
    TakenBack,
    TooLong,
    Unknown,
)
from gateway.serving.queue_ports import BandUse, PoolUse, Wish

Argument = str | int | bytes
NUMBER_MAX = 2**53 - 1
_SEQUENCES_MAX, _NEED_MAX = 10**6 - 1, 10**12 - 1
_NOBODY = b"\xff"
_FIRST = Struct("<d")
_GRANTED, _QUEUED = 0, 1
_GRANT, _LOOK = 1, 2
_PLAIN: dict[int, Callable[..., Answer]] = {
    2: QueueFull,
    3: TooLong,
    4: Parked,
    5: TakenBack,
    6: Unknown,
    7: NoWorker,
    8: StillQueued,
}


def wish_arguments(wish: Wish, gateway: str) -> tuple[Argument, ...]:
    """As `lua_queue/wish.lua` reads it. Raises ValueError where a number is out of its range, or a
    name cannot be one."""
    if not 1 <= wish.sequences <= _SEQUENCES_MAX or not 0 <= wish.need_tokens <= _NEED_MAX:
        raise ValueError("a request has from 1 to 999,999 sequences, and from 0 to 10^12 tokens")
    if wish.weight < 1:
        raise ValueError("a weight is at least 1")
    return (
        name(wish.id), name(wish.tenant), gateway, int(wish.band), wish.sequences,
        wish.need_tokens, wish.cost, wish.weight, wish.wait_ms, wish.promote_after_ms,
        wish.waited_ms, wish.taken_back, _without_nul(wish.lot),
    )  # fmt: skip


def name(given: str) -> str:
    """A name that the store's orders can hold. Raises ValueError."""
    if not given:
        raise ValueError("an empty name")
    return _without_nul(given)


def gateway_name(given: str) -> str:
    """A name that stands before a lot's. Raises ValueError."""
    if "\1" in given:
        raise ValueError("a gateway's name with a character 1 in it")
    return name(given)


def _without_nul(given: str) -> str:
    if "\0" in given:
        raise ValueError("a name with a NUL in it")
    return given


def room_arguments(room: WorkerRoom) -> tuple[Argument, ...]:
    """As `report.lua` reads it."""
    ceilings = (room.sequences_max, room.batch_max, room.tokens_max)
    return (name(room.id), *(min(each, NUMBER_MAX) for each in ceilings))


def answer(reply: Sequence[object]) -> Answer:
    """One ANSWER."""
    kind, *rest = cast("list[int]", reply)
    if kind == _GRANTED:
        return Granted(cast("bytes", reply[1]).decode())
    if kind == _QUEUED:
        own_ahead, ahead, wait_ms = rest
        return Queued(own_ahead, ahead, _known(wait_ms))
    return _PLAIN[kind](*rest)


def pool_use(reply: Sequence[object]) -> PoolUse:
    """What `observe.lua` says."""
    parked, bands, workers, tenants, levels = cast(
        "tuple[int, list[list[int]], list[list[object]], list[bytes], list[int]]", reply
    )
    pairs = zip(tenants[::2], tenants[1::2], strict=True)
    waiting = {
        tenant.decode(): int(_FIRST.unpack_from(packed)[0])
        for tenant, packed in pairs
        if tenant != _NOBODY
    }
    return PoolUse(
        bands={
            Band(at): BandUse(requests, cost, need, oldest_ms, _known(wait_ms))
            for at, (requests, cost, need, oldest_ms, wait_ms) in enumerate(bands)
        },
        parked=parked,
        rooms=tuple(_room(worker) for worker in workers),
        tenants_waiting={tenant: count for tenant, count in waiting.items() if count},
        shares=shares(tenants, levels),
    )


def message(gateway: str, payload: bytes) -> Message:
    """What was published. Raises ValueError, msgspec's own included, where it is none of ours."""
    ticket_id, worker, what = msgspec.msgpack.decode(payload, type=tuple[str, str, int])
    return Message(gateway, ticket_id, worker, is_grant=what == _GRANT, is_look=what == _LOOK)


def _known(wait_ms: int) -> int | None:
    return None if wait_ms < 0 else wait_ms


def _room(worker: Sequence[object]) -> WorkerRoom:
    worker_id, *numbers = worker
    return WorkerRoom(cast("bytes", worker_id).decode(), *cast("list[int]", numbers))
