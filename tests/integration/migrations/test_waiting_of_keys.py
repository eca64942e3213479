"""Limits of keys that the release before stored, in a database of this one, and back."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.tenant import Limits
from gateway.migrate import downgrade, upgrade

ME = "cli:test"
BEFORE = "0005"

Stored = dict[str, dict[str, object]]

OF_BEFORE: Stored = {
    "untouched": {"max_queued": 64, "max_wait_ms": 10_000, "weight": 1, "models": {}},
    "limited": {"tpm": 100, "max_queued": 64, "max_wait_ms": 10_000, "rpm": None},
    "longer": {"max_queued": 64, "max_wait_ms": 60_000},
    "fewer": {"max_queued": 5, "max_wait_ms": 10_000},
    "never": {"max_queued": 0, "max_wait_ms": 0},
}


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test's own."""
    made = async_engine(database_url, pooled=False)
    yield made
    await made.dispose()


@pytest.fixture
async def administration(engine: AsyncEngine) -> Administration:
    """With a tenant that has a key of each name of OF_BEFORE."""
    made = Administration(engine)
    await made.create_tenant(ME, "acme", "Acme")
    for name in OF_BEFORE:
        await made.create_key(ME, "acme", name, "interactive")
    return made


async def store_as_before(engine: AsyncEngine) -> None:
    """What that release stored."""
    async with engine.begin() as db:
        statement = text("UPDATE api_key SET limits = CAST(:limits AS jsonb) WHERE name = :name")
        for name, limits in OF_BEFORE.items():
            values = {"name": name, "limits": msgspec.json.encode(limits).decode()}
            await db.execute(statement, values)


async def stored(engine: AsyncEngine) -> dict[str, tuple[dict[str, object], int, int]]:
    """Of each key its limits, their version and the number of its last change."""
    async with engine.connect() as db:
        rows = await db.execute(text("SELECT name, limits, limits_version, changed FROM api_key"))
        return {name: (limits, version, changed) for name, limits, version, changed in rows}


async def test_what_nobody_chose_goes_and_what_somebody_did_stays(
    engine: AsyncEngine, database_url: str, administration: Administration
) -> None:
    """Both defaults together are nobody's choice, whatever else is limited. Gateways hear of the
    keys that changed, and of no other."""
    await downgrade(database_url, BEFORE)
    await store_as_before(engine)
    then = await stored(engine)
    await upgrade(database_url)
    now = await stored(engine)
    for name in ("longer", "fewer", "never"):
        assert now[name] == then[name]
    for name in ("untouched", "limited"):
        assert now[name][0].keys() == OF_BEFORE[name].keys() - {"max_queued", "max_wait_ms"}
        assert now[name][1] > then[name][1]
        assert now[name][2] > then[name][2]
    keys = {key.name: key.limits for key in (await administration.list_keys("acme")).items}
    assert keys["untouched"] == Limits()
    assert keys["limited"] == Limits(tpm=100)
    assert (keys["longer"].max_queued, keys["longer"].max_wait_ms) == (64, 60_000)


async def test_the_release_before_finds_both_numbers(
    engine: AsyncEngine, database_url: str, administration: Administration
) -> None:
    """It takes no null there. Going up again changes the same keys."""
    named = {key.name: key.id for key in (await administration.list_keys("acme")).items}
    await administration.put_key_limits(ME, named["limited"], {"tpm": 100})
    await administration.put_key_limits(ME, named["fewer"], {"max_queued": 5})
    before = await stored(engine)
    assert all(None not in limits.values() for limits, *_ in before.values())
    async with engine.begin() as db:
        as_null = "jsonb_set(limits, '{max_wait_ms}', 'null')"
        await db.execute(text(f"UPDATE api_key SET limits = {as_null} WHERE name = 'never'"))
    await downgrade(database_url, BEFORE)
    down = await stored(engine)
    defaults = {"max_queued": 64, "max_wait_ms": 10_000}
    assert down["limited"][0] == {**before["limited"][0], **defaults}
    assert down["fewer"][0] == {**before["fewer"][0], **defaults, "max_queued": 5}
    assert down["never"][0] == {**before["never"][0], **defaults}
    await upgrade(database_url)
    again = await stored(engine)
    assert again["limited"][0] == before["limited"][0]
    assert again["fewer"][0] == down["fewer"][0]
