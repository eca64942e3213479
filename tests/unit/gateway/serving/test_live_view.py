"""One look for all who look, and what it shows of latencies and hosted providers."""

import asyncio
from typing import Any

import pytest
from live_world import MemoryBoard, live_view_of
from memory_gateway import MemoryGateway
from usage_examples import a_record

from gateway.domain.hosted import HostedModel, HostedProvider
from gateway.errors import StoreUnavailable
from gateway.serving.hosted_use import Use


class World:
    """A live view over a gateway in memory, with one hosted provider."""

    def __init__(self) -> None:
        self.gateway = MemoryGateway()
        self.gateway.directory.all_providers = [
            HostedProvider(
                name="near", url="https://near.test/v1", models={"m": HostedModel(name="x")}
            )
        ]
        self.gateway.ledger.marked = ["acme"]
        self.board = MemoryBoard()
        self.view = live_view_of(self.gateway, self.board)

    async def look(self) -> Any:
        """What is shown, a second after the last look."""
        self.gateway.clock.advance(1_000)
        return await self.view.look()


async def test_fifty_who_look_cost_one_look() -> None:
    """At once, and within a second; then it is looked at again."""
    world = World()
    seen = await asyncio.gather(*(world.view.look() for _ in range(50)))
    assert world.board.looks == 1
    assert all(each is seen[0] for each in seen)
    world.gateway.clock.advance(999)
    await world.view.look()
    assert world.board.looks == 1
    world.gateway.clock.advance(1)
    await world.view.look()
    assert world.board.looks == 2


async def test_a_program_is_shown_what_is_now() -> None:
    """Also where a page has just been shown something else."""
    world = World()
    await world.view.look()
    world.gateway.ledger.marked = []
    assert (await world.view.look_now())["tenants"] == []
    assert [each["id"] for each in (await world.view.look())["tenants"]] == ["acme"]


async def test_one_who_leaves_ends_nobodys_look() -> None:
    """The others wait for the same."""
    world = World()
    leaving = asyncio.create_task(world.view.look())
    staying = asyncio.create_task(world.view.look())
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying)["degraded"] == []
    assert world.board.looks == 1


async def test_a_look_that_failed_is_not_remembered() -> None:
    """Who comes next looks again."""
    world = World()
    world.gateway.ledger.away = True
    with pytest.raises(StoreUnavailable):
        await world.view.look()
    world.gateway.ledger.away = False
    assert (await world.view.look())["tenants"]


async def test_a_tenant_has_its_name_and_its_limits_beside_its_use() -> None:
    """Those that a page shows use against."""
    (tenant,) = (await World().look())["tenants"]
    assert (tenant["id"], tenant["name"], tenant["suspended"]) == ("acme", "Acme", False)
    assert {"max_sequences", "tpm", "rpm", "max_queued"} <= tenant.keys()
    assert (tenant["sequences_running"], tenant["sequences_queued"]) == (0, 0)


async def test_latencies_are_shown_against_their_targets() -> None:
    """By worker and by model and class; null with a count of 0 where nothing was measured."""
    world = World()
    for _ in range(20):
        world.view.latencies.ended(a_record(model="m", worker_id="w0", ttft_ms=500, tpot_us=30_000))
    world.view.latencies.ended(a_record(model="m", worker_id="hosted:near", ttft_ms=90))
    await world.view.latencies.tell()
    view = await world.look()
    interactive, batch = view["latency"]
    assert (interactive["class"], interactive["ttft_target_ms"]) == ("interactive", 800)
    assert (batch["class"], batch["tpot_target_ms"]) == ("batch", 60)
    assert interactive["last_minute"]["ttft_count"] == 21
    assert interactive["last_minute"]["ttft_p95_ms"] == pytest.approx(500, rel=0.05)
    assert batch["last_five_minutes"] == {
        "ttft_p95_ms": None, "ttft_count": 0, "tpot_p95_ms": None, "tpot_count": 0
    }  # fmt: skip
    (worker,) = view["workers"]
    assert worker["latency"]["last_minute"]["tpot_p95_ms"] == pytest.approx(30, rel=0.05)
    (hosted,) = view["hosted"]
    assert hosted["latency"]["last_minute"]["ttft_count"] == 1


async def test_a_provider_in_use_says_since_when() -> None:
    """And how much runs there, of all gateways."""
    world = World()
    (hosted,) = (await world.look())["hosted"]
    assert (hosted["running"], hosted["in_use_since"]) == (0, None)
    now_ms = world.gateway.clock.now_ms()
    world.board.uses["other"] = (now_ms, {"hosted:near": Use(2, now_ms)})
    (hosted,) = (await world.look())["hosted"]
    assert (hosted["running"], hosted["in_use_since"]) == (2, "2027-01-15T08:00:01.000Z")


async def test_what_the_store_does_not_tell_is_null_and_named() -> None:
    """Never 0."""
    world = World()
    world.board.away = True
    view = await world.look()
    assert view["degraded"] == ["latencies", "hosted_use"]
    assert view["latency"] is None
    assert view["workers"][0]["latency"] is None
    (hosted,) = view["hosted"]
    assert (hosted["running"], hosted["in_use_since"], hosted["latency"]) == (None, None, None)


async def test_while_the_store_is_away_a_gateway_tells_what_it_knows_by_itself() -> None:
    """Workers and circuits; what all gateways share is null, never 0."""
    world = World()
    world.board.away = True
    seen = world.view.alone()
    assert seen["degraded"][0] == "redis"
    assert (seen["tenants"], seen["latency"]) == ([], None)
    (provider,) = seen["hosted"]
    assert (provider["circuit"], provider["running"]) == ("closed", None)
    for pool in seen["pools"]:
        assert pool["queue"] is None
    looked = await world.look()
    assert [each["id"] for each in seen["workers"]] == [each["id"] for each in looked["workers"]]
    assert set(seen) == set(looked)
