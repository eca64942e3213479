"""What `/admin/v1/live` shows where a part of the store is away."""

import inspect
from typing import Any

import pytest
from memory_gateway import MemoryGateway
from tenant_examples import a_tenant

from gateway.errors import StoreUnavailable
from gateway.http.live import live_handler
from gateway.serving.condition import Watch

TENANTS = [f"t{n}" for n in range(40)]


class Live:
    """The view over a gateway in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        gateway = MemoryGateway()
        tenants = {name: a_tenant(id=name) for name in TENANTS}
        monkeypatch.setattr(gateway.directory, "tenant", tenants.get)
        self.ledger = gateway.ledger
        self.ledger.marked = [*TENANTS, "unknown"]
        watch = Watch(
            directory=gateway.directory,
            leases=gateway.leases,
            journal=gateway.journal,
            fleet=gateway.fleet,
            metering_lag_s=lambda: 0.0,
            directory_stale_ms_max=60_000,
            stores_unseen_ms_max=60_000,
        )
        self.handler: Any = live_handler(
            gateway.directory, self.ledger, gateway.fleet, watch, gateway.hosted,
            clock=gateway.clock,
        )  # fmt: skip

    async def seen(self) -> tuple[list[str], list[str]]:
        """Tenants, and what is degraded."""
        found = self.handler.fn()
        view = await found if inspect.isawaitable(found) else found
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
