"""What Alembic runs for each command: the connection comes from `gateway.migrate`, already locked.

Every revision is a transaction of its own, so that an interrupted upgrade stops between two.
"""

import importlib
import importlib.util

from alembic import context
from sqlalchemy import Connection, MetaData

from gateway.adapters import tables


def target_metadata() -> list[MetaData]:
    """Every table that the code knows, to be compared with what the revisions make."""
    known = [tables.metadata]
    if importlib.util.find_spec("billing.postgres.invoice_tables") is not None:
        known.append(importlib.import_module("billing.postgres.invoice_tables").metadata)
        for more in ("budget_tables", "coarse_tables"):  # of the same metadata
            importlib.import_module(f"billing.postgres.{more}")
    return known


def _migrate() -> None:
    connection = context.config.attributes["connection"]
    assert isinstance(connection, Connection)  # noqa: S101 - only gateway.migrate calls this
    context.configure(
        connection=connection,
        target_metadata=target_metadata(),
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


_migrate()
