"""What a tenant is shown of its place, and metrics of pools."""

from typing import Any, cast

import msgspec
from memory_leases import counted
from memory_pool_queue import MemoryStore
from prometheus_client import REGISTRY

from gateway.domain.queue.ceilings import NO_CEILING
from gateway.domain.queue.tickets import Band
from gateway.http.openapi_v1 import OwnQueue
from gateway.serving.queue_gauges import show_pools
from gateway.serving.queue_ports import PoolUse, Wish
from gateway.serving.queue_view import own_queue, room_view
from gateway.telemetry import pools


def wish(name: str, tenant: str, band: Band = Band.INTERACTIVE, cost: int = 100) -> Wish:
    return Wish(name, tenant, band, 1, 70, cost, 1, 600_000, 500_000)


async def a_pool(*wishes: Wish, departed: bool = False, parks: bool = False) -> PoolUse:
    """Of one place, which the first has; where something `departed` the pool's speed is known,
    where it `parks` the first is parked then."""
    store = MemoryStore()
    store.room("w0", 1)
    queue = store.gateway("g")
    if departed:
        await queue.enter("m", wish("before", "x"), max_queued=99)
        await queue.leave("m", "before", actual_cost=100)
        speed = store.pools["m"].speed
        speed.cost, speed.cost_ms = 100, 100 * 400
    for each in wishes:
        await queue.enter("m", each, max_queued=99)
    if parks:
        await queue.park("m", wishes[0].id, max_queued=99)
    return await queue.observe("m")


def own(tenant: str, use: PoolUse | None) -> Any:
    """As the body of `GET /v1/limits` has it."""
    view = own_queue(tenant, 1, {"m": use}, now_ms=0)
    assert msgspec.to_builtins(msgspec.convert(view, OwnQueue)) == view
    return view


async def test_a_tenant_sees_its_own_and_what_is_ahead() -> None:
    """Per class: its own that wait, tokens before the first of them and before the next to come,
    and what that one would wait, from tokens ahead and the pool's speed."""
    wishes = [wish("r0", "other"), wish("r1", "other"), wish("r2", "me"), wish("r3", "me")]
    use = await a_pool(*wishes, wish("r4", "me", Band.BATCH), departed=True)
    view = own("me", use)
    assert view["queued"] == 3
    (shown,) = view["models"].values()
    interactive, batch = shown["interactive"], shown["batch"]
    # The other tenant has been served 100 already, so mine go first until it has caught up.
    assert (interactive["queued"], interactive["tokens_ahead"]) == (2, 0)
    assert interactive["next"] == {"own_ahead": 2, "tokens_ahead": 300, "wait_ms": 1_200}
    assert (batch["queued"], batch["tokens_ahead"]) == (1, 300)
    assert batch["next"] == {"own_ahead": 1, "tokens_ahead": 400, "wait_ms": 1_600}


async def test_of_another_tenant_nothing_is_named() -> None:
    """INV-12: one that has nothing here sees no name, no count and no size of a request of others,
    only how much would go before its own."""
    use = await a_pool(*(wish(f"r{n}", "secret-name", cost=77) for n in range(9)))
    view = own("me", use)
    assert "secret-name" not in str(view)
    assert view["queued"] == 0
    (shown,) = view["models"].values()
    assert shown["interactive"]["next"]["tokens_ahead"] == 0
    assert shown["batch"]["next"]["tokens_ahead"] == 8 * 77


async def test_what_is_not_known_is_null() -> None:
    """Nothing has departed: no speed. Nobody ahead: no wait. No worker, no prediction. No store,
    nothing."""
    one_waits = await a_pool(wish("r0", "other"), wish("r1", "me"))
    (shown,) = own("me", one_waits)["models"].values()
    assert shown["batch"]["next"]["wait_ms"] is None
    assert shown["interactive"]["next"]["wait_ms"] is None
    (shown,) = own("me", await a_pool())["models"].values()
    assert shown["interactive"]["next"]["wait_ms"] == 0
    nobody_well = await a_pool()
    nobody_well.rooms[0].well_until_ms = 0
    (shown,) = own("me", nobody_well)["models"].values()
    assert shown["interactive"]["next"]["wait_ms"] is None
    assert own("me", None) == {"queued": None, "models": {"m": None}}


async def test_what_is_parked_waits_too() -> None:
    """It is counted, and in no class: it waits for no place."""
    use = await a_pool(wish("r0", "me"), wish("r1", "me"), parks=True)
    view = own("me", use)
    (shown,) = view["models"].values()
    assert (view["queued"], shown["parked"], shown["interactive"]["queued"]) == (1, 1, 0)


async def test_a_class_is_shown_from_the_pool_that_serves_it() -> None:
    """Who still waits where its class is served no longer is counted in all, and in no class."""
    shared = await a_pool(wish("r0", "x"), wish("r1", "me"), wish("r2", "me", Band.BATCH))
    reserved = await a_pool(*(wish(f"b{n}", "other", Band.BATCH) for n in range(3)), departed=True)
    view = own_queue("me", 1, {"m": shared, "m#batch": reserved}, now_ms=0)
    assert msgspec.to_builtins(msgspec.convert(view, OwnQueue)) == view
    assert view["queued"] == 2
    (shown,) = cast("Any", view["models"]).values()
    assert (shown["parked"], shown["interactive"]["queued"], shown["batch"]["queued"]) == (0, 1, 0)
    assert shown["batch"]["next"] == {"own_ahead": 0, "tokens_ahead": 0, "wait_ms": 0}
    (alone,) = own("me", shared)["models"].values()
    assert alone["batch"]["next"]["own_ahead"] == 1
    assert shown["interactive"]["next"]["tokens_ahead"] == 100
    unseen = own_queue("me", 1, {"m": shared, "m#batch": None, "n": shared}, now_ms=0)
    assert unseen["queued"] is None
    assert {model: view is None for model, view in cast("Any", unseen["models"]).items()} == {
        "m": True,
        "n": False,
    }


async def test_gauges_add_up_the_pools_of_a_model() -> None:
    """But what is predicted is of the pool that serves the class."""
    shared = await a_pool(wish("r0", "x"), wish("r1", "y", Band.BATCH))
    reserved = await a_pool(*(wish(f"b{n}", "x", Band.BATCH) for n in range(3)), departed=True)
    show_pools({"m": shared, "m#batch": reserved})
    of = {"model": "m", "request_class": "batch"}
    assert counted("weir_pool_waiting_requests", **of) == 3
    assert counted("weir_pool_predicted_wait_seconds", **of) == 0.8
    show_pools({"m": shared, "m#batch": None})
    assert all(not family.samples for gauge in pools.ALL for family in gauge.collect())


async def test_no_ceiling_is_null() -> None:
    """A very large number says nothing to anyone."""
    use = await a_pool()
    (room,) = use.rooms
    room.sequences_max = room.tokens_max = NO_CEILING
    assert room_view(room) == {
        "sequences": 0, "sequences_max": None, "batch_max": 1, "tokens": 0, "tokens_max": None
    }  # fmt: skip


async def test_the_gauges_are_what_was_seen() -> None:
    """And what is not seen any more is gone."""
    use = await a_pool(wish("r0", "a"), wish("r1", "b"), wish("r2", "b", Band.BATCH), departed=True)
    (room,) = use.rooms
    room.tokens_max = NO_CEILING
    show_pools({"m": use, "unseen": None})
    of = {"model": "m", "request_class": "batch"}
    assert counted("weir_pool_waiting_requests", **of) == 1
    assert counted("weir_pool_waiting_tokens", **of) == 70
    assert counted("weir_pool_waiting_weighted_tokens", **of) == 100
    assert counted("weir_pool_predicted_wait_seconds", **of) == 0.8
    assert counted("weir_place_sequences", model="m", worker="w0") == 1
    assert counted("weir_place_tokens", model="m", worker="w0") == 70
    assert counted("weir_ceiling", model="m", worker="w0", kind="batch") == 1
    unknown = {"model": "m", "worker": "w0", "kind": "tokens"}
    assert REGISTRY.get_sample_value("weir_ceiling", unknown) is None
    show_pools({"m": None})
    assert all(not family.samples for gauge in pools.ALL for family in gauge.collect())
