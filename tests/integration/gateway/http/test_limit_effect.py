"""What limits would do, asked before they are saved: on real stores, with something running."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from admin_api import AdminApi, client_of
from litestar import Litestar
from live_world import MemoryBoard, live_view_of
from memory_gateway import MemoryGateway
from sqlalchemy.ext.asyncio import AsyncEngine
from tenant_examples import a_key, a_tenant

from gateway.administration import Administration
from gateway.domain.admission import Demand
from gateway.domain.scopes import scopes_of
from gateway.domain.tenant import Limits, Model
from gateway.errors import StoreUnavailable
from gateway.http.admin import admin_router
from gateway.http.limit_effect import limit_effect_handler
from gateway.http.openapi_limit_effect import LimitsEffectAnswer
from gateway.http.problems import PROBLEM_HANDLERS

ME = "cli:test"
PATH = "/tenants/acme/limits/effect"


class World:
    """The API on a real Postgres, and what runs in a gateway in memory."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.administration = Administration(engine)
        self.gateway = MemoryGateway()
        self.view = live_view_of(self.gateway, MemoryBoard())
        self.api: AdminApi

    async def open(self) -> None:
        """`acme` may run 20 sequences and is charged 3,000 tokens for 12 that run; `big` has no
        limit, `small` 5, and `gone` is suspended."""
        verbs = self.administration
        await verbs.register_model(ME, Model(id="m", context_tokens=2048, max_output_tokens=512))
        await verbs.create_tenant(ME, "acme", "Acme", Limits(max_sequences=20, tpm=9_000))
        await verbs.create_tenant(ME, "big", "Big")
        await verbs.create_tenant(ME, "small", "Small", Limits(max_sequences=5, tpm=1_000))
        await verbs.create_tenant(ME, "gone", "Gone", Limits(max_sequences=100))
        await verbs.update_tenant(ME, "gone", suspended=True)
        self.gateway.ledger.marked = ["acme"]
        demand = Demand("r1", 12, 3_000, 3_000)
        await self.gateway.ledger.acquire(
            "acme", "key-1", "m", demand, scopes_of(a_tenant(), a_key(), "m")
        )

    async def effect(self, body: object) -> dict[str, Any]:
        """What it would do."""
        found: dict[str, Any] = await self.api.json("POST", PATH, body)
        assert msgspec.convert(found, LimitsEffectAnswer)
        return found


@pytest.fixture
async def world(engine: AsyncEngine) -> AsyncIterator[World]:
    """As `World.open` says."""
    made = World(engine)
    await made.open()
    app = Litestar(
        [admin_router(made.administration, more=[limit_effect_handler(made.view)])],
        exception_handlers=PROBLEM_HANDLERS,
    )
    async with client_of(app) as client:
        made.api = AdminApi(client, made.administration, {})
        yield made


def one(found: dict[str, Any], limit: str, model: str | None = None) -> dict[str, Any]:
    """One limit of an answer."""
    (each,) = (each for each in found["limits"] if (each["limit"], each["model"]) == (limit, model))
    return dict(each)


async def test_what_runs_is_held_against_the_new_limits(world: World) -> None:
    """12 running against 8 bind at once, by 4; 3,000 tokens against 4,000 do not. It is not
    saved."""
    found = await world.effect({"max_sequences": 8, "tpm": 4_000, "models": {"m": {"rpm": 1}}})
    assert one(found, "max_sequences") == {
        "limit": "max_sequences", "model": None, "now": 20, "then": 8, "used": 12,
        "over_by": 4, "binds_at_once": True,
    }  # fmt: skip
    assert (one(found, "tpm")["used"], one(found, "tpm")["binds_at_once"]) == (3_000, False)
    assert one(found, "rpm", "m")["binds_at_once"] is True
    assert one(found, "max_queued")["used"] == 0
    kept = await world.administration.get_tenant_limits("acme")
    assert (kept.max_sequences, kept.tpm) == (20, 9_000)
    audited = await world.api.json("GET", "/audit?subject_id=acme")
    assert "tenant.limits" not in {each["action"] for each in audited["items"]}


async def test_what_is_promised_in_all_is_held_against_the_pool(world: World) -> None:
    """Of all that are not suspended, those without a limit apart."""
    world.gateway.queues.room("w1", 32, batch=16)
    found = await world.effect({"max_sequences": 40})
    assert found["promised"] == {
        "max_sequences": {
            "now": 25, "then": 45, "without_limit_now": 1, "without_limit_then": 1
        },
        "tpm": {"now": 10_000, "then": 1_000, "without_limit_now": 1, "without_limit_then": 2},
    }  # fmt: skip
    assert found["pool"]["workers"] == 2
    assert found["pool"]["tokens_last_minute"] == 3_000
    assert found["degraded"] == []


async def test_what_is_not_known_is_null_and_named(world: World) -> None:
    """Where the stores of leases and queues are away."""
    world.gateway.ledger.away = True
    world.gateway.queues.away = True
    found = await world.effect({"max_sequences": 8})
    assert one(found, "max_sequences")["used"] is None
    assert one(found, "max_sequences")["binds_at_once"] is None
    assert found["pool"] is None
    assert found["degraded"] == ["redis", "queue:m"]


async def test_what_put_refuses_is_refused(world: World) -> None:
    """With the same field; and a tenant that is not there is 404."""
    for body in (
        {"max_sequences": -1},
        {"max_seqences": 1},
        {"models": {"n": {"tpm": 1}}},
        {"monthly_budget": "1.00"},
    ):
        answers = [
            await world.api.call("POST", PATH, body),
            await world.api.call("PUT", PATH.removesuffix("/effect"), body),
        ]
        assert [answer.status_code for answer in answers] == [422, 422]
        assert answers[0].json()["param"] == answers[1].json()["param"]
    answer = await world.api.call("POST", "/tenants/nobody/limits/effect", {})
    assert answer.status_code == 404


async def test_the_live_view_may_be_away(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is told."""

    async def away() -> None:
        raise StoreUnavailable("Redis cannot be reached")

    monkeypatch.setattr(world.view, "tokens_last_minute", away)
    assert (await world.effect({}))["pool"]["tokens_last_minute"] is None
