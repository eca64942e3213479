"""Limits are replaced whole or field by field, with a version that only grows."""

import asyncio

import pytest

from gateway.administration import Administration
from gateway.domain.tenant import Limits, ModelLimits
from gateway.errors import NotFound, Unprocessable

ME = "cli:test"


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
