"""What a tenant's own people are told of its limits, its use and its place in the queues."""

import asyncio
from typing import Any

import msgspec
import pytest
from live_world import MemoryBoard, live_view_of
from memory_gateway import MemoryGateway
from memory_ports import START_MS
from tenant_examples import a_key, a_tenant

from gateway.domain.admission import Demand
from gateway.domain.admission_money import name_of
from gateway.domain.scopes import scopes_of
from gateway.domain.tenant import ApiKey, Limits, ModelLimits, Tenant
from gateway.serving.month_now import month_now
from gateway.serving.own_now import SCOPES_ASKED_MAX, is_narrowed, own_now

TENANT = a_tenant(
    Limits(
        max_sequences=8,
        tpm=1000,
        models={"m": ModelLimits(rpm=3), "same": ModelLimits()},
    )
)
RICH = a_tenant(Limits(monthly_budget="2.00", tpm=1000))
KEY = a_key(Limits(tpm=400, models={"m": ModelLimits(max_sequences=2)}))


async def looked(gateway: MemoryGateway, tenant: Tenant, *keys: ApiKey) -> Any:
    """What is told."""
    return await own_now(tenant, keys, live_view_of(gateway, MemoryBoard()))


async def test_each_scope_that_is_narrowed_has_its_limits_and_use() -> None:
    """The tenant, its model, its key and the key's model; a model or a key without a limit of its
    own is not told of."""
    gateway = MemoryGateway()
    scopes = scopes_of(TENANT, KEY, "m")
    await gateway.ledger.acquire("acme", KEY.id, "m", Demand("r", 2, 40, 40), scopes)
    wide = msgspec.structs.replace(KEY, id="key-2", limits=Limits(weight=5))
    told = await looked(gateway, TENANT, KEY, wide)
    assert told["is_known"]
    tenant = told["tenant"]
    assert (tenant["sequences_running"], tenant["max_sequences"]) == (2, 8)
    assert (tenant["tokens_last_minute"], tenant["tpm"]) == (40, 1000)
    assert (tenant["queued"], tenant["max_queued"], tenant["max_wait_ms"]) == (0, 64, 10_000)
    places = [(each["key_id"], each["model"]) for each in told["narrowed"]]
    assert places == [(None, "m"), (KEY.id, None), (KEY.id, "m")]
    assert [each["rpm"] for each in told["narrowed"]] == [3, None, None]
    assert [each["tpm"] for each in told["narrowed"]] == [None, 400, None]
    assert [each["sequences_running"] for each in told["narrowed"]] == [2, 2, 2]


async def test_while_the_store_is_away_use_is_null_and_limits_are_there() -> None:
    """Null, never 0."""
    gateway = MemoryGateway()
    gateway.ledger.away = True
    told = await looked(gateway, RICH, KEY)
    assert not told["is_known"]
    for each in (told["tenant"], *told["narrowed"]):
        used = ("sequences_running", "tokens_last_minute", "requests_last_minute",
                "spent_this_month", "committed_this_month", "budget_permille")  # fmt: skip
        assert {each[name] for name in used} == {None}
    assert told["tenant"]["tpm"] == 1000
    assert told["tenant"]["monthly_budget"] == "2.00"
    assert told["narrowed"][0]["tpm"] == 400


async def test_a_months_spend_is_asked_for_where_the_store_does_not_know_it() -> None:
    """Once; what is committed is an amount and a share of the budget. Without a budget there is no
    share, and nobody is asked."""
    gateway = MemoryGateway()
    month = name_of(month_now(RICH, START_MS).key)
    gateway.months.spent[month]["tenant"] = 500_000_000_000
    view = live_view_of(gateway, MemoryBoard())
    tenant: Any = (await own_now(RICH, (), view, gateway.months))["tenant"]
    assert gateway.months.asked == [("acme", month)]
    assert (tenant["committed_this_month"], tenant["budget_permille"]) == ("0.50", 250)
    assert tenant["remaining_this_month"] == "1.50"
    other = MemoryGateway()
    free: Any = (await own_now(a_tenant(Limits()), (), live_view_of(other, MemoryBoard()),
                               other.months))["tenant"]  # fmt: skip
    assert other.months.asked == []
    assert (free["monthly_budget"], free["budget_permille"]) == (None, None)


async def test_a_budget_of_nothing_is_used_up() -> None:
    """As one of which all is spent."""
    gateway = MemoryGateway()
    tenant = a_tenant(Limits(monthly_budget="0"))
    told: Any = await own_now(tenant, (), live_view_of(gateway, MemoryBoard()), gateway.months)
    assert told["tenant"]["budget_permille"] == 1000


async def test_anothers_use_and_place_are_in_nothing_that_is_told() -> None:
    """INV-12: the answer is the same to the last field whatever another tenant runs."""
    gateway = MemoryGateway()
    before = await looked(gateway, TENANT, KEY)
    other = msgspec.structs.replace(TENANT, id="globex", name="Globex")
    theirs = msgspec.structs.replace(KEY, id="key-9", tenant_id="globex")
    demand = Demand("r9", 5, 900, 900)
    await gateway.ledger.acquire("globex", theirs.id, "m", demand, scopes_of(other, theirs, "m"))
    assert await looked(gateway, TENANT, KEY) == before


class Counted:
    """Counts what a ledger is asked, and of how many scopes."""

    def __init__(self, gateway: MemoryGateway) -> None:
        self.asked: list[int] = []
        self._observe = gateway.ledger.observe

    async def observe(self, tenant_id: str, scopes: Any, month: Any) -> Any:
        self.asked.append(len(scopes))
        return await self._observe(tenant_id, scopes, month)


async def test_who_looks_within_a_second_shares_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once or later; with other limits, or after the second, it is a new one. A look that failed
    is nobody else's."""
    gateway = MemoryGateway()
    counted = Counted(gateway)
    monkeypatch.setattr(gateway.ledger, "observe", counted.observe)
    view = live_view_of(gateway, MemoryBoard())
    first, second = await asyncio.gather(*(own_now(TENANT, [KEY], view) for _ in range(2)))
    assert first == second == await own_now(TENANT, [KEY], view)
    assert len(counted.asked) == 1
    await own_now(RICH, [KEY], view)
    assert len(counted.asked) == 2
    gateway.clock.advance(1_000)
    await own_now(RICH, [KEY], view)
    assert len(counted.asked) == 3
    gateway.clock.advance(1_000)
    monkeypatch.setattr(gateway.ledger, "observe", None)
    for _ in range(2):
        with pytest.raises(TypeError):
            await own_now(RICH, [KEY], view)
    monkeypatch.setattr(gateway.ledger, "observe", counted.observe)
    await own_now(RICH, [KEY], view)
    assert len(counted.asked) == 4


async def test_of_so_many_scopes_only_is_use_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others the limits are told, and use is null."""
    gateway = MemoryGateway()
    counted = Counted(gateway)
    monkeypatch.setattr(gateway.ledger, "observe", counted.observe)
    many = {f"m{number:03}": ModelLimits(rpm=number) for number in range(SCOPES_ASKED_MAX + 5)}
    told = await looked(gateway, a_tenant(Limits(models=many)))
    assert counted.asked == [SCOPES_ASKED_MAX]
    running = [each["sequences_running"] for each in told["narrowed"]]
    assert running == [0] * (SCOPES_ASKED_MAX - 1) + [None] * 6
    assert [each["rpm"] for each in told["narrowed"]] == list(range(len(many)))
    assert told["is_known"]


def test_a_limit_of_its_own_is_what_makes_narrower() -> None:
    """0 is one; a weight or a policy is none."""
    assert is_narrowed(Limits(tpm=0))
    assert is_narrowed(ModelLimits(max_output_tokens=1))
    assert not is_narrowed(Limits(weight=5, max_queued=1))
