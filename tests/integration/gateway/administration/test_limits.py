"""Limits are replaced whole or field by field, with a version that only grows."""

import asyncio

import pytest
from sqlalchemy import func, insert
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.price_tables import price
from gateway.administration import Administration
from gateway.domain.tenant import Limits, Model, ModelLimits
from gateway.errors import Conflict, NotFound, Unprocessable

ME = "cli:test"
N = Model(id="n", context_tokens=2048, max_output_tokens=512)


@pytest.fixture(autouse=True)
async def acme(administration: Administration) -> None:
    """The tenant whose limits change."""
    await administration.create_tenant(ME, "acme", "Acme", Limits(rpm=5, tpm=7))


async def test_each_limit_is_stored_as_itself(administration: Administration) -> None:
    """rpm and tpm read back exactly: neither is derived from the other (R14)."""
    limits = await administration.get_tenant_limits("acme")
    assert (limits.rpm, limits.tpm) == (5, 7)


async def test_put_replaces_the_whole(administration: Administration) -> None:
    """What the new limits do not name takes its default, and the version grows."""
    before = await administration.get_tenant("acme")
    after = await administration.put_tenant_limits(ME, "acme", {"max_sequences": 1})
    assert after.limits == Limits(max_sequences=1)
    assert after.limits_version > before.limits_version
    again = await administration.put_tenant_limits(ME, "acme", Limits(max_sequences=1))
    assert again == after


async def test_a_change_keeps_the_other_fields(administration: Administration) -> None:
    """Twenty changes of two fields at once, from two sides: none undoes another."""
    await asyncio.gather(
        *(administration.change_tenant_limits(ME, "acme", {"rpm": n}) for n in range(10, 20)),
        administration.change_tenant_limits(ME, "acme", {"max_sequences": 3}),
        *(administration.change_tenant_limits(ME, "acme", {"weight": n}) for n in range(2, 11)),
    )
    limits = await administration.get_tenant_limits("acme")
    assert (limits.max_sequences, limits.tpm) == (3, 7)
    assert limits.rpm in range(10, 20)
    assert limits.weight in range(2, 11)


async def test_a_models_limits_narrow_it_alone(administration: Administration) -> None:
    """Per model, and gone again once none is left."""
    one = await administration.change_tenant_limits(ME, "acme", {"tpm": 3}, model_id="m")
    assert one.limits.models == {"m": ModelLimits(tpm=3)}
    assert one.limits.tpm == 7
    two = await administration.change_tenant_limits(ME, "acme", {"rpm": 1}, model_id="m")
    assert two.limits.models == {"m": ModelLimits(tpm=3, rpm=1)}
    none = await administration.change_tenant_limits(
        ME, "acme", {"tpm": None, "rpm": None}, model_id="m"
    )
    assert none.limits.models == {}
    with pytest.raises(Unprocessable):
        await administration.change_tenant_limits(ME, "acme", {"tpm": 3}, model_id="gpt-5")


async def test_a_keys_limits_are_its_own(administration: Administration) -> None:
    """Changing them leaves the tenant's; both are audited with before and after (B11)."""
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    changed = await administration.put_key_limits(ME, key.id, {"tpm": 9})
    amended = await administration.change_key_limits(ME, key.id, {"rpm": 2})
    assert amended.limits == Limits(tpm=9, rpm=2)
    assert key.limits_version < changed.limits_version < amended.limits_version
    assert await administration.get_key_limits(key.id) == amended.limits
    assert (await administration.get_tenant_limits("acme")).tpm == 7
    entry = (await administration.list_audit(1)).items[0]
    assert (entry.action, entry.subject_kind, entry.subject_id) == ("key.limits", "key", key.id)
    assert entry.before is not None
    assert entry.after is not None
    assert (entry.before["rpm"], entry.after["rpm"]) == (None, 2)


async def test_a_refused_change_leaves_everything(administration: Administration) -> None:
    """No limit, no version, no audit entry; an unknown key is NotFound."""
    before = await administration.get_tenant("acme")
    for changes in ({"tpm": -1}, {"monthly_budget": "5.00"}, {"tokens": 1}, {"rpm": "8"}):
        with pytest.raises(Unprocessable):
            await administration.change_tenant_limits(ME, "acme", changes)
    assert await administration.get_tenant("acme") == before
    assert (await administration.list_audit(1)).items[0].action == "tenant.create"
    with pytest.raises(NotFound):
        await administration.put_key_limits(ME, "key_unknown", {})


async def a_price(engine: AsyncEngine, model: str = "m", currency: str = "USD") -> None:
    """The fleet's price of a model, from now on."""
    async with engine.begin() as db:
        await db.execute(
            insert(price).values(
                model=model,
                provider="self",
                currency=currency,
                input_pico=1,
                output_pico=2,
                effective_from=func.date_trunc("milliseconds", func.now()),
            )
        )


async def test_b27_a_budget_needs_prices(
    administration: Administration, engine: AsyncEngine
) -> None:
    """B27, R14: refused while a model that it reaches has none, then kept as it was written; B04:
    null takes it away."""
    await administration.register_model(ME, N)
    await a_price(engine, "m")
    with pytest.raises(Unprocessable, match="model n has no price in USD"):
        await administration.put_tenant_limits(ME, "acme", {"monthly_budget": "5.00"})
    await administration.put_tenant_limits(ME, "acme", {"models": {"m": {"monthly_budget": "5"}}})
    await a_price(engine, "n")
    await administration.put_tenant_limits(ME, "acme", {"monthly_budget": "5.00"})
    assert (await administration.get_tenant_limits("acme")).monthly_budget == "5.00"
    gone = await administration.put_tenant_limits(ME, "acme", {"monthly_budget": None})
    assert gone.limits.monthly_budget is None


async def test_b27_a_keys_budget_is_for_its_models(
    administration: Administration, engine: AsyncEngine
) -> None:
    """Its tenant needs none; a model that it may not use needs no price, and has no limits."""
    await administration.register_model(ME, N)
    await a_price(engine, "m")
    key, _ = await administration.create_key(ME, "acme", "k", "batch", models=["m"])
    wide, _ = await administration.create_key(ME, "acme", "w", "batch")
    changed = await administration.put_key_limits(ME, key.id, {"monthly_budget": "0.01"})
    assert changed.limits == Limits(monthly_budget="0.01")
    with pytest.raises(Unprocessable, match="model n has no price"):
        await administration.put_key_limits(ME, wide.id, {"monthly_budget": "0.01"})
    with pytest.raises(Unprocessable, match=r"models\.n: the key may not use"):
        await administration.put_key_limits(ME, key.id, {"models": {"n": {"tpm": 1}}})


async def test_a_budget_holds_the_currency(
    administration: Administration, engine: AsyncEngine
) -> None:
    """Five dollars are not five yen: it is changed while neither tenant nor key has a budget."""
    await a_price(engine)
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    await administration.put_key_limits(ME, key.id, {"models": {"m": {"monthly_budget": "5"}}})
    assert (await administration.update_tenant(ME, "acme", currency="USD")).currency == "USD"
    with pytest.raises(Unprocessable, match=rf"key {key.id} has a budget") as refused:
        await administration.update_tenant(ME, "acme", currency="JPY")
    assert refused.value.param == "currency"
    await administration.put_key_limits(ME, key.id, {})
    await administration.put_tenant_limits(ME, "acme", {"monthly_budget": "5"})
    with pytest.raises(Unprocessable, match="the tenant has a budget"):
        await administration.update_tenant(ME, "acme", currency="JPY")
    await administration.put_tenant_limits(ME, "acme", {})
    assert (await administration.update_tenant(ME, "acme", currency="JPY")).currency == "JPY"


async def test_limits_are_saved_only_over_those_that_were_seen(
    administration: Administration,
) -> None:
    """A tenant's and a key's: whoever saved meanwhile has saved."""
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    seen = (await administration.get_tenant("acme")).limits_version
    changed = await administration.put_tenant_limits(ME, "acme", {"rpm": 6}, if_version=seen)
    await administration.put_key_limits(ME, key.id, {"rpm": 3}, if_version=key.limits_version)
    with pytest.raises(Conflict) as refused:
        await administration.put_tenant_limits(ME, "acme", {"rpm": 7}, if_version=seen)
    assert refused.value.code == "limits_changed"
    with pytest.raises(Conflict, match="meanwhile"):
        await administration.put_key_limits(ME, key.id, {}, if_version=key.limits_version)
    assert (await administration.get_tenant("acme")) == changed
    assert (await administration.get_key(key.id)).limits.rpm == 3


async def test_what_a_keys_limits_would_be_is_told(administration: Administration) -> None:
    """And refused as they would be; nothing is saved."""
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    change = await administration.preview_key_limits(key.id, {"tpm": 9})
    assert (change.now, change.then) == (Limits(), Limits(tpm=9))
    with pytest.raises(Unprocessable, match="at most 7, the tenant's own"):
        await administration.preview_key_limits(key.id, {"tpm": 9}, within_tenant=True)
    with pytest.raises(Unprocessable, match="no such model"):
        await administration.preview_key_limits(key.id, {"models": {"gone": {"tpm": 1}}})
    assert (await administration.get_key(key.id)).limits == Limits()
