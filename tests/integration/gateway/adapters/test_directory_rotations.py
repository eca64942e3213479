"""What the directory says of a key that was rotated when it changes later (B09)."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.directory import CachedDirectory
from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.tenant import Limits

ME = "cli:test"


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on this test's database."""
    made = async_engine(database_url, pool_size=2)
    yield made
    await made.dispose()


async def test_a_key_that_was_rotated_before_it_changed_is_said_to_have_been(
    engine: AsyncEngine,
) -> None:
    """So that what comes later takes nothing from those whose grace is over."""
    administration = Administration(engine)
    await administration.create_tenant(ME, "acme", "Acme")
    key, _ = await administration.create_key(ME, "acme", "k", "batch")
    directory = CachedDirectory(engine)
    told: list[tuple[set[str], set[str]]] = []
    directory.on_change.append(
        lambda change: told.append(({each.id for each in change.keys}, change.rotated_before))
    )
    await directory.refresh()
    new, _ = await administration.rotate_key(ME, key.id, grace_ms=60_000)
    await directory.refresh()
    await administration.put_key_limits(ME, key.id, Limits(tpm=3))
    await directory.refresh()
    assert told == [({key.id}, set()), ({key.id, new.id}, set()), ({key.id}, {key.id})]
