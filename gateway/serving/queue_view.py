"""What a tenant sees of the queues, and an admin of all pools."""

from collections.abc import Mapping

from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.ceilings import NO_CEILING
from gateway.domain.queue.standing import standing_of, wait_of
from gateway.domain.queue.tickets import Band
from gateway.serving.queue_ports import PoolUse

Json = dict[str, object]
Uses = Mapping[str, PoolUse | None]
"""By pool; None where the store does not tell."""


def class_of(band: Band) -> str:
    """As the API names it."""
    return band.name.lower()


def own_queue(tenant: str, weight: int, uses: Uses, *, now_ms: int) -> Json:
    """Of one tenant, in the pools of `uses`. What waits is counted, parked requests included;
    `null` is what is not known now."""
    return {
        "queued": queued_of(tenant, uses),
        "models": {
            pool: None if use is None else _own_pool(tenant, weight, use, now_ms)
            for pool, use in uses.items()
        },
    }


def queued_of(tenant: str, uses: Uses) -> int | None:
    """How many requests of a tenant wait in all these pools."""
    known = [use for use in uses.values() if use is not None]
    if len(known) < len(uses):
        return None
    return sum(use.tenants_waiting.get(tenant, 0) for use in known)


def waiting_in(uses: Uses) -> list[str]:
    """Tenants of which something waits, by name."""
    return sorted({name for use in uses.values() if use for name in use.tenants_waiting})


def _own_pool(tenant: str, weight: int, use: PoolUse, now_ms: int) -> Json:
    shares = use.shares.get(tenant, {})
    for_a_place = sum(share.requests for share in shares.values())
    return {
        "parked": use.tenants_waiting.get(tenant, 0) - for_a_place,
        **{class_of(band): _own_band(tenant, weight, use, band, now_ms) for band in Band},
    }


def _own_band(tenant: str, weight: int, use: PoolUse, band: Band, now_ms: int) -> Json:
    standing = standing_of(tenant, band, weight, use.shares)
    ahead = standing.next_ahead_tokens
    wait_ms = None
    if is_served(use, now_ms):
        wait_ms = wait_of(
            ahead,
            all_tokens=sum(each.weighted_tokens for at, each in use.bands.items() if at <= band),
            all_wait_ms=use.bands[band].wait_ms,
        )
    return {
        "queued": standing.requests,
        "tokens_ahead": standing.ahead_tokens,
        "next": {"own_ahead": standing.requests, "tokens_ahead": ahead, "wait_ms": wait_ms},
    }


def is_served(use: PoolUse, now_ms: int) -> bool:
    """Whether any gateway finds a worker of the pool well."""
    return any(room.well_until_ms > now_ms for room in use.rooms)


def pool_view(use: PoolUse | None) -> Json:
    """One pool, without its name; all `null` where the store does not tell. `queued_tokens` are
    prompt and output tokens; weighted ones count in the order."""
    if use is None:
        return dict.fromkeys(("queued_tokens", "queue", "parked", "sequences_running"))
    return {
        "queued_tokens": {class_of(band): each.need_tokens for band, each in use.bands.items()},
        "queue": {
            class_of(band): {
                "requests": each.requests,
                "weighted_tokens": each.weighted_tokens,
                "oldest_wait_ms": each.oldest_wait_ms if each.requests else None,
                "predicted_wait_ms": each.wait_ms,
            }
            for band, each in use.bands.items()
        },
        "parked": use.parked,
        "sequences_running": sum(room.running for room in use.rooms),
    }


def room_view(room: WorkerRoom) -> Json:
    """What the places on a worker hold, and its ceilings; `null` is none."""
    return {
        "sequences": room.running,
        "sequences_max": ceiling(room.sequences_max),
        "batch_max": ceiling(room.batch_max),
        "tokens": room.tokens,
        "tokens_max": ceiling(room.tokens_max),
    }


def ceiling(number: int) -> int | None:
    """A ceiling, None where there is none."""
    return None if number >= NO_CEILING else number
