"""The schema's history runs up, down and up again, also from several places at once."""

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.adapters.tables import metadata
from gateway.errors import StoreUnavailable
from gateway.migrate import (
    MigrationFailed,
    _config,
    current_and_head,
    downgrade,
    head,
    upgrade,
)

SCHEMA_QUERIES = (
    """SELECT c.relname, c.relkind::text, a.attname, format_type(a.atttypid, a.atttypmod),
        a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE n.nspname = 'public' ORDER BY 1, 2, 3""",
    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
    """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2""",
    """SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger
    WHERE NOT tgisinternal ORDER BY 1, 2""",
    """SELECT proname, pg_get_functiondef(oid) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND prokind = 'f' ORDER BY 1""",
    "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public' ORDER BY 1",
)


ROWS_ONLY = ("0006",)


async def schema_of(engine: AsyncEngine) -> list[list[tuple[object, ...]]]:
    """Everything that the catalogue says of the public schema, but for Alembic's own table."""
    found = []
    async with engine.connect() as db:
        for query in SCHEMA_QUERIES:
            rows = await db.execute(text(query))
            found.append([tuple(row) for row in rows if "alembic_version" not in str(row)])
    return found


async def test_up_down_and_up_again_leaves_the_same_schema(empty_database_url: str) -> None:
    """Down to base removes everything, and going up again makes exactly what was there."""
    engine = async_engine(empty_database_url, pooled=False)
    empty = await schema_of(engine)
    await upgrade(empty_database_url)
    first = await schema_of(engine)
    assert await current_and_head(empty_database_url) == (head(), head())
    await downgrade(empty_database_url, "base")
    assert await schema_of(engine) == empty
    assert await current_and_head(empty_database_url) == (None, head())
    await upgrade(empty_database_url)
    assert await schema_of(engine) == first
    await engine.dispose()


async def test_each_revision_undoes_itself(empty_database_url: str) -> None:
    """Every single step down leaves the schema as it was before that step up, and every step but
    those that only change rows makes another."""
    engine = async_engine(empty_database_url, pooled=False)
    revisions = [each.revision for each in ScriptDirectory.from_config(_config()).walk_revisions()]
    await upgrade(empty_database_url)
    for upper, lower in zip(revisions, [*revisions[1:], "base"], strict=True):
        with_upper = await schema_of(engine)
        await downgrade(empty_database_url, lower)
        assert (await schema_of(engine) == with_upper) is (upper in ROWS_ONLY), upper
        await upgrade(empty_database_url)
        await downgrade(empty_database_url, upper)
        assert await schema_of(engine) == with_upper, upper
        await downgrade(empty_database_url, lower)
    await engine.dispose()


async def test_several_may_migrate_at_once(empty_database_url: str) -> None:
    """Five at the same time: one does the work, all succeed."""
    await asyncio.gather(*(upgrade(empty_database_url) for _ in range(5)))
    assert await current_and_head(empty_database_url) == (head(), head())


async def test_the_tables_in_code_are_those_in_the_database(database_url: str) -> None:
    """gateway.adapters.tables describes what revision 0001 makes, to the type and index."""

    def differences(connection: Connection) -> list[object]:
        def is_ours(name: str | None, kind: str, _parents: object) -> bool:
            return kind != "table" or name in metadata.tables

        context = MigrationContext.configure(
            connection, opts={"compare_server_default": True, "include_name": is_ours}
        )
        return list(compare_metadata(context, metadata))

    engine = async_engine(database_url, pooled=False)
    async with engine.connect() as db:
        assert await db.run_sync(differences) == []
    await engine.dispose()


async def test_an_unknown_revision_is_reported(database_url: str) -> None:
    """A database of a later release is left alone, with one clear message."""
    engine = async_engine(database_url, pooled=False)
    async with engine.begin() as db:
        await db.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(MigrationFailed, match="9999"):
        await upgrade(database_url)
    assert await current_and_head(database_url) == ("9999", head())
    await engine.dispose()


async def test_an_unreachable_database_is_store_unavailable(free_port: int) -> None:
    """No server at the address: StoreUnavailable, from each of the functions."""
    url = f"postgresql://nobody@127.0.0.1:{free_port}/none"
    with pytest.raises(StoreUnavailable):
        await upgrade(url)
    with pytest.raises(StoreUnavailable):
        await current_and_head(url)
