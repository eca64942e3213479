"""What `/admin/v1/live` shows where a part of the store is away."""

import inspect
from typing import Any

import msgspec
import pytest
from live_world import MemoryBoard, live_view_of
from memory_gateway import MemoryGateway
from tenant_examples import a_tenant, a_worker

from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import RequestClass
from gateway.errors import StoreUnavailable
from gateway.http.live import live_handler
from gateway.http.openapi_live import LiveAnswer
from gateway.serving.queue_ports import Wish

TENANTS = [f"t{n}" for n in range(40)]


class Live:
    """The view over a gateway in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gateway = gateway = MemoryGateway()
        tenants = {name: a_tenant(id=name) for name in TENANTS}
        monkeypatch.setattr(gateway.directory, "tenant", tenants.get)
        self.ledger = gateway.ledger
        self.ledger.marked = [*TENANTS, "unknown"]
        self.board = MemoryBoard()
        self.live = live_view_of(gateway, self.board)
        self.handler: Any = live_handler(self.live)

    async def view(self) -> Any:
        """The whole."""
        found = self.handler.fn()
        return await found if inspect.isawaitable(found) else found

    async def seen(self) -> tuple[list[str], list[str]]:
        """Tenants, and what is degraded."""
        view = await self.view()
        return [tenant["id"] for tenant in view["tenants"]], view["degraded"]


async def test_all_are_shown_the_most_recent_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """But whom the directory does not know."""
    assert await Live(monkeypatch).seen() == (TENANTS[::-1], [])


async def test_a_shard_that_is_away_hides_its_own_tenants_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others are shown, and whom it hides is named."""
    live = Live(monkeypatch)
    live.ledger.shard_away = {"t3", "t30"}
    tenants, degraded = await live.seen()
    assert tenants == [name for name in reversed(TENANTS) if name not in live.ledger.shard_away]
    assert degraded == ["redis:t30", "redis:t3"]


@pytest.mark.parametrize("whole", [True, False])
async def test_where_nothing_is_seen_it_says_so(
    whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503, instead of a page that looks as if nothing ran."""
    live = Live(monkeypatch)
    live.ledger.away = whole
    live.ledger.shard_away = set(TENANTS)
    with pytest.raises(StoreUnavailable):
        await live.seen()


async def test_who_only_waits_is_shown_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what waits and runs in each pool and on each worker, and the document's fields."""
    live = Live(monkeypatch)
    live.ledger.marked = ["t1"]
    queues = live.gateway.queues
    queues.room("w0", 1, batch=1)
    queue = queues.gateway("one")
    for name, tenant, band in (
        ("r1", "t1", Band.INTERACTIVE), ("r2", "t2", Band.INTERACTIVE), ("r3", "t2", Band.BATCH)
    ):  # fmt: skip
        wish = Wish(name, tenant, band, 1, 70, 100, 1, 10_000, 9_000)
        await queue.enter("m", wish, max_queued=9)
    view = await live.view()
    assert [(each["id"], each["sequences_queued"]) for each in view["tenants"]] == [
        ("t1", 0),
        ("t2", 2),
    ]
    assert msgspec.convert(view, LiveAnswer)
    (pool,) = view["pools"]
    for each in pool["queue"].values():
        assert 0 <= each.pop("oldest_wait_ms") < 10_000
    waits = {"requests": 1, "weighted_tokens": 100, "predicted_wait_ms": None}
    assert pool == {
        "model": "m",
        "class": None,
        "queued_tokens": {"interactive": 70, "batch": 70},
        "queue": {"interactive": waits, "batch": waits},
        "parked": 0,
        "sequences_running": 1,
    }
    (worker,) = view["workers"]
    assert worker["places"] == {
        "sequences": 1, "sequences_max": 1, "batch_max": 1, "tokens": 70, "tokens_max": 10**9
    }  # fmt: skip
    assert view["degraded"] == []


async def test_pools_of_a_class_are_shown_beside_the_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker's places are those of its own pool."""
    live = Live(monkeypatch)
    live.gateway.directory.all_workers.append(a_worker("w1", request_class=RequestClass.BATCH))
    queues = live.gateway.queues
    queues.room("w1", 1, pool="m#batch")
    for name in ("r1", "r2"):
        wish = Wish(name, "t1", Band.BATCH, 1, 70, 100, 1, 10_000, 9_000)
        await queues.gateway("one").enter("m#batch", wish, max_queued=9)
    view = await live.view()
    assert msgspec.convert(view, LiveAnswer)
    shown = [(each["model"], each["class"], each["sequences_running"]) for each in view["pools"]]
    assert shown == [("m", None, 0), ("m", "batch", 1)]
    assert [each["queue"]["batch"]["requests"] for each in view["pools"]] == [0, 1]
    workers = [(each["class"], each["places"]["sequences"]) for each in view["workers"]]
    assert workers == [(None, 0), ("batch", 1)]
    queues.away = True
    live.gateway.clock.advance(300)
    assert (await live.view())["degraded"] == ["queue:m", "queue:m#batch"]


async def test_a_queue_that_is_not_seen_is_no_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is `null`, and named; what else is known is shown."""
    live = Live(monkeypatch)
    live.gateway.queues.away = True
    view = await live.view()
    assert view["pools"] == [
        dict.fromkeys(("model", "class", "queued_tokens", "queue", "parked", "sequences_running"))
        | {"model": "m"}
    ]
    assert view["degraded"] == ["queue:m"]
    assert {each["sequences_queued"] for each in view["tenants"]} == {None}
    assert view["workers"][0]["places"] is None
    assert msgspec.convert(view, LiveAnswer)
