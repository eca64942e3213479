from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import CheckConstraint, Connection, inspect
from sqlalchemy.schema import conv

from billing.postgres import budget_tables, coarse_tables, invoice_tables
from gateway.adapters.postgres import async_engine

metadata = invoice_tables.metadata
assert budget_tables.metadata is coarse_tables.metadata is metadata


async def test_the_tables_in_code_are_those_in_the_database(database_url: str) -> None:
    """billing.postgres describes what its revisions make, to the type and
    index."""

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


async def test_the_checks_in_code_are_those_in_the_database(database_url: str) -> None:
    """Alembic does not compare checks, so their names are compared here."""

    def names(connection: Connection) -> dict[str, set[str | None]]:
        inspector = inspect(connection)
        return {
            table: {each["name"] for each in inspector.get_check_constraints(table)}
            for table in metadata.tables
        }

    engine = async_engine(database_url, pooled=False)
    async with engine.connect() as db:
        found = await db.run_sync(names)
    await engine.dispose()
    assert found == {
        name: {_name(each, name) for each in table.constraints if isinstance(each, CheckConstraint)}
        for name, table in metadata.tables.items()
    }


def _name(check: CheckConstraint, table: str) -> str:
    """As the database has it: `conv` is whole."""
    name = str(check.name)
    if isinstance(check.name, conv):
        return name
    whole = name if name.startswith(table) else f"{table}_{name}_check"
    return whole.replace(f"{table}_{table}", table)
