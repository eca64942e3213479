"""Hosted providers are registered, changed and forgotten, with their keys unseen."""

import pytest
from hosted_examples import PRICE, a_provider
from msgspec.structs import replace
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.administration import Administration
from gateway.domain.hosted import HostedModel
from gateway.domain.tenant import Worker
from gateway.errors import NotFound, Unprocessable

ME = "cli:test"


async def audited(administration: Administration) -> list[str]:
    """Actions on hosted providers, the latest first."""
    entries = (await administration.list_audit()).items
    return [entry.action for entry in entries if entry.subject_kind == "hosted"]


async def test_registering_again_changes_or_does_nothing(administration: Administration) -> None:
    """The same twice is one audit entry; what comes back is what is stored."""
    wanted = a_provider(url="https://ai.example/", rank=3, extensions=("top_k",))
    stored = await administration.register_hosted_provider(ME, wanted)
    assert stored == replace(wanted, url="https://ai.example/v1")
    assert await administration.register_hosted_provider(ME, wanted) == stored
    assert await administration.get_hosted_provider("acme-ai") == stored
    assert await audited(administration) == ["hosted.register"]
    dearer = {"m": HostedModel(name="big-m", price=replace(PRICE, output=1_600_001))}
    changed = await administration.register_hosted_provider(ME, replace(stored, models=dearer))
    assert (await administration.list_hosted_providers()).items == [changed]
    entry = (await administration.list_audit(1)).items[0]
    assert entry.before is not None
    assert entry.after is not None
    shown = [image["models"]["m"]["price"]["output"] for image in (entry.before, entry.after)]
    assert shown == ["1.60", "1.600001"]


async def test_a_key_stays_until_it_is_replaced_or_removed(administration: Administration) -> None:
    """Said nothing of it stays; it is in no audit entry."""
    provider = a_provider()
    await administration.register_hosted_provider(ME, provider, api_key="first-secret")
    kept = await administration.register_hosted_provider(ME, replace(provider, rank=1))
    assert kept.api_key == "first-secret"
    second = await administration.register_hosted_provider(ME, kept, api_key="second-secret")
    assert second.api_key == "second-secret"
    assert "secret" not in str((await administration.list_audit()).items)
    none = await administration.register_hosted_provider(ME, provider, api_key=None)
    assert none.api_key is None
    assert len(await audited(administration)) == 4


async def test_a_stored_key_goes_to_no_other_server(administration: Administration) -> None:
    """Whoever may change an address does not learn the key by it."""
    await administration.register_hosted_provider(ME, a_provider(), api_key="its-secret")
    elsewhere = a_provider(url="https://elsewhere.example/v1")
    with pytest.raises(Unprocessable) as refused:
        await administration.register_hosted_provider(ME, elsewhere)
    assert refused.value.param == "api_key"
    path = a_provider(url="https://ai.example/openai/v1")
    assert (await administration.register_hosted_provider(ME, path)).api_key == "its-secret"
    moved = await administration.register_hosted_provider(ME, elsewhere, api_key=None)
    assert (moved.url, moved.api_key) == ("https://elsewhere.example/v1", None)


async def test_a_provider_is_at_no_workers_server(administration: Administration) -> None:
    """Neither new nor moved there, whatever the scheme and path; the refusal names the worker."""
    worker = Worker(id="w-0", model="m", url="http://10.0.0.1:443")
    await administration.register_worker(ME, worker)
    there = a_provider(url="https://10.0.0.1/v1")
    for stored in ([], [a_provider()]):
        for provider in stored:
            await administration.register_hosted_provider(ME, provider)
        with pytest.raises(Unprocessable, match="w-0") as refused:
            await administration.register_hosted_provider(ME, there)
        assert refused.value.param == "url"
        assert (await administration.list_hosted_providers()).items == stored
    await administration.remove_worker(ME, "w-0")
    assert await administration.register_hosted_provider(ME, there) == there


async def test_another_key_is_audited_as_that(administration: Administration) -> None:
    """A rotation is no entry whose before is its after."""
    provider = a_provider()
    for key in ("first-secret", "second-secret", None):
        await administration.register_hosted_provider(ME, provider, api_key=key)
    await administration.register_hosted_provider(ME, replace(provider, rank=1))
    ranked, removed, rotated, first = (await administration.list_audit(4)).items
    assert rotated.before is not None
    assert rotated.after == {**rotated.before, "api_key_changed": True}
    shown = [(entry.after or {}).get("api_key_changed") for entry in (ranked, removed, first)]
    assert shown == [None, True, None]


async def test_a_removed_provider_is_as_new_when_it_comes_back(
    administration: Administration, engine: AsyncEngine
) -> None:
    """Its row stays for those who follow changes, its key does not."""
    await administration.register_hosted_provider(ME, a_provider(), api_key="its-secret")
    await administration.remove_hosted_provider(ME, "acme-ai")
    assert (await administration.list_hosted_providers()).items == []
    with pytest.raises(NotFound):
        await administration.get_hosted_provider("acme-ai")
    with pytest.raises(NotFound):
        await administration.remove_hosted_provider(ME, "acme-ai")
    async with engine.connect() as db:
        found = await db.execute(text("SELECT api_key, removed_at FROM hosted_provider"))
        api_key, removed_at = found.one()
    assert (api_key, removed_at is None) == (None, False)
    again = await administration.register_hosted_provider(ME, a_provider())
    assert again.api_key is None
    assert await audited(administration) == ["hosted.register", "hosted.remove", "hosted.register"]


async def test_a_refused_provider_leaves_nothing(administration: Administration) -> None:
    """No row and no audit entry."""
    with pytest.raises(Unprocessable):
        await administration.register_hosted_provider(
            ME, a_provider(models={"unknown": HostedModel(name="x")})
        )
    assert (await administration.list_hosted_providers()).items == []
    assert await audited(administration) == []


async def test_a_tenants_policy_said_as_it_is_changes_nothing(
    administration: Administration,
) -> None:
    """Where none is stored it is the strict one, and to say so is no change; a key's is its own."""
    before = await administration.create_tenant(ME, "acme", "Acme")
    assert (await administration.get_tenant_limits("acme")).data_policy == "self_hosted_only"
    strict = {"data_policy": "self_hosted_only"}
    after = await administration.change_tenant_limits(ME, "acme", strict)
    assert after.limits_version == before.limits_version
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    assert (await administration.get_key_limits(key.id)).data_policy is None
    tightened = await administration.change_key_limits(ME, key.id, strict)
    assert tightened.limits.data_policy == "self_hosted_only"
    assert tightened.limits_version > key.limits_version
    loosened = await administration.change_key_limits(ME, key.id, {"data_policy": None})
    assert loosened.limits.data_policy is None
