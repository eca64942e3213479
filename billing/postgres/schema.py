"""Whether the database is as far as this release's migrations."""

from functools import cache
from importlib.resources import files

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


@cache
def newest_revision() -> str:
    """The newest revision that this release brings; revisions are numbers of four digits."""
    names = (each.name for each in files("migrations").joinpath("versions").iterdir())
    return max(name[:4] for name in names if name.endswith(".py") and name[:4].isdigit())


async def current_revision(connection: AsyncConnection) -> str | None:
    """The newest revision that the database has; None where it has no schema."""
    table = await connection.scalar(text("SELECT to_regclass('alembic_version')"))
    if table is None:
        return None
    found = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    return None if found is None else str(found)


async def is_behind(connection: AsyncConnection) -> bool:
    """Whether the database lacks revisions that this release brings: it may refuse values that
    this release writes. One of a later release is not behind."""
    current = await current_revision(connection)
    return current is None or current < newest_revision()
