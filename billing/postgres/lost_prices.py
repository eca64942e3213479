"""Prices and plans as texts that outlive Postgres, and put back into one that was restored from a
backup: records that were rated at them name them."""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

TABLES: Mapping[str, str] = {
    "price_entry": "price_refuse_past",
    "plan_member": "plan_member_refuse_past",
}
"""Append-only, each with the trigger that lets nothing begin in the past."""
AT_ONCE = 1_000


async def load_written(
    connection: AsyncConnection, table: str, *, after_id: int
) -> list[tuple[int, str]]:
    """Rows of one of TABLES after that id, some at once: their ids, and each as JSON."""
    rows = await connection.execute(
        text(
            f"SELECT id, CAST(to_jsonb(row) - 'changed' AS text) FROM {table} AS row"  # noqa: S608 - one of ours
            " WHERE id > :after ORDER BY id LIMIT :most"
        ),
        {"after": after_id, "most": AT_ONCE},
    )
    return [(row[0], row[1]) for row in rows]


async def find_lost(connection: AsyncConnection, table: str, rows: Sequence[str]) -> list[int]:
    """The ids of those rows of one of TABLES that are not there as they were: their ids are no
    row's, or another's. What a later release added to the table is not compared."""
    found = await connection.execute(
        text(
            "SELECT CAST(had ->> 'id' AS bigint) AS id"  # noqa: S608 - as above
            " FROM jsonb_array_elements(CAST(:rows AS jsonb)) AS had"
            f" LEFT JOIN {table} AS held ON held.id = CAST(had ->> 'id' AS bigint)"
            " WHERE held.id IS NULL"
            " OR to_jsonb(jsonb_populate_record(held, had)) <> to_jsonb(held) ORDER BY 1"
        ),
        {"rows": "[" + ",".join(rows) + "]"},
    )
    return list(found.scalars())


async def use_no_id_again(connection: AsyncConnection, table: str, *, newest: int) -> bool:
    """Have the next row of one of TABLES numbered above `newest`, an id that was in use before a
    restore: records name it. Returns whether it was not so."""
    sequence = f"pg_get_serial_sequence('{table}', 'id')"
    last = await connection.scalar(
        text(f"SELECT coalesce(pg_sequence_last_value(CAST({sequence} AS regclass)), 0)")
    )
    if int(last or 0) >= newest:
        return False
    await connection.execute(text(f"SELECT setval({sequence}, :newest)"), {"newest": newest})
    return True


async def put_back(connection: AsyncConnection, table: str, rows: Sequence[str]) -> list[int]:
    """Write rows of one of TABLES again, as they were and whenever they begin, within the caller's
    transaction; those that are there stay. Returns the ids of those that were not. Takes the
    rights of the tables' owner."""
    if not rows:
        return []
    trigger = TABLES[table]
    columns = sorted(json.loads(rows[0]))
    names = ", ".join(f'"{name}"' for name in columns)
    await connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}"))
    written = await connection.execute(
        text(
            f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE SELECT {names}"  # noqa: S608 - as above
            f" FROM jsonb_populate_recordset(NULL::{table}, CAST(:rows AS jsonb))"
            " ORDER BY id ON CONFLICT DO NOTHING RETURNING id"
        ),
        {"rows": "[" + ",".join(rows) + "]"},
    )
    ids = sorted(written.scalars())
    await connection.execute(text(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}"))
    return ids
