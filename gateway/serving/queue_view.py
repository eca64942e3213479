"""What a tenant sees of the queues, and an admin of all pools."""

from collections import defaultdict
from collections.abc import Mapping

from gateway.domain.pools import class_of_pool, model_of, pool_among
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.ceilings import NO_CEILING
from gateway.domain.queue.standing import standing_of, wait_of
from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import RequestClass
from gateway.serving.queue_ports import PoolUse

Json = dict[str, object]
Uses = Mapping[str, PoolUse | None]
"""By pool; None where the store does not tell."""


def class_of(band: Band) -> str:
    """As the API names it."""
    return band.name.lower()


def own_queue(tenant: str, weight: int, uses: Uses, *, now_ms: int) -> Json:
    """Of one tenant, in the pools of `uses`, which are all of their models'. What waits is counted,
    parked requests included; `null` is what is not known now."""
    known = known_by_model(uses)
    return {
        "queued": queued_of(tenant, uses),
        "models": {
            model: _own_model(tenant, weight, model, known[model], now_ms)
            if model in known
            else None
            for model in dict.fromkeys(map(model_of, uses))
        },
    }


def known_by_model(uses: Uses) -> dict[str, dict[str, PoolUse]]:
    """By model, then by pool; without the models of which a pool is not known."""
    known: defaultdict[str, dict[str, PoolUse]] = defaultdict(dict)
    for pool, use in uses.items():
        if use is not None:
            known[model_of(pool)][pool] = use
    unknown = {model_of(pool) for pool, use in uses.items() if use is None}
    return {model: pools for model, pools in known.items() if model not in unknown}


def serving(band: Band, model: str, pools: Mapping[str, PoolUse]) -> PoolUse:
    """Of all pools of a model the one that serves a class."""
    return pools[pool_among(model, RequestClass(class_of(band)), pools)]


def queued_of(tenant: str, uses: Uses) -> int | None:
    """How many requests of a tenant wait in all these pools."""
    known = [use for use in uses.values() if use is not None]
    if len(known) < len(uses):
        return None
    return sum(use.tenants_waiting.get(tenant, 0) for use in known)


def waiting_in(uses: Uses) -> list[str]:
    """Tenants of which something waits, by name."""
    return sorted({name for use in uses.values() if use for name in use.tenants_waiting})


def _own_model(
    tenant: str, weight: int, model: str, pools: Mapping[str, PoolUse], now_ms: int
) -> Json:
    return {
        "parked": sum(_parked(tenant, use) for use in pools.values()),
        **{
            class_of(band): _own_band(tenant, weight, serving(band, model, pools), band, now_ms)
            for band in Band
        },
    }


def _parked(tenant: str, use: PoolUse) -> int:
    shares = use.shares.get(tenant, {})
    for_a_place = sum(share.requests for share in shares.values())
    return use.tenants_waiting.get(tenant, 0) - for_a_place


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


def pool_view(pool: str, use: PoolUse | None) -> Json:
    """One pool; what the store tells is `null` where it does not. `queued_tokens` are prompt and
    output tokens; weighted ones count in the order."""
    name: Json = {"model": model_of(pool), "class": class_of_pool(pool)}
    if use is None:
        return name | dict.fromkeys(("queued_tokens", "queue", "parked", "sequences_running"))
    return name | {
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
