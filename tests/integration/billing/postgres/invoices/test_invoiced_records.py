"""A record that is on an issued invoice stays as it was taken, whoever asks in SQL."""

import asyncio

import pytest
from invoice_world import InvoiceWorld, billed
from msgspec.structs import replace
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from billing.domain.invoicing.issuing import Override
from billing.postgres.invoice_issue import issue_invoice

CHANGES = [
    "UPDATE usage_record SET output_tokens = output_tokens + 1",
    "UPDATE usage_record SET cost_pico = cost_pico + 1",
    "UPDATE usage_record SET price_id = NULL, cost_pico = NULL",
    "UPDATE usage_record SET tenant_id = 'other'",
    "UPDATE usage_record SET billable = false",
    "UPDATE usage_record SET final = false",
    "UPDATE usage_record SET currency = 'EUR'",
    "UPDATE usage_record SET model = 'other'",
    "UPDATE usage_record SET usage_flags = '{}' || ARRAY['x']",
    "DELETE FROM usage_record",
]


@pytest.mark.parametrize("statement", [*CHANGES, "TRUNCATE usage_record"])
async def test_no_statement_changes_what_was_taken(world: InvoiceWorld, statement: str) -> None:
    """None of its columns, nor is it removed. Void, it is anybody's again."""
    await world.use("2026-01-05T00:00:00Z")
    invoice = (await world.close("2026-01")).invoice
    before = await world.query("SELECT usage_record FROM usage_record")
    with pytest.raises(DBAPIError, match="never changed or removed"):
        await world.sql(statement)
    assert await world.query("SELECT usage_record FROM usage_record") == before
    await world.void(invoice.id)
    await world.sql(statement)


@pytest.mark.parametrize("statement", CHANGES)
async def test_what_nobody_took_can_be_put_right(world: InvoiceWorld, statement: str) -> None:
    """As before: by hand, and found by the reconciliation."""
    await world.use("2026-01-05T00:00:00Z")
    await world.sql(statement)


async def test_a_journal_replaces_what_is_not_final(world: InvoiceWorld) -> None:
    """Another gateway's account gives way to the request's own, on an issued month too; what is
    final and invoiced does not, and nothing is refused."""
    provisional = await world.use("2026-01-06T00:00:00Z", final=False, output_tokens=3)
    taken = await world.use("2026-01-05T00:00:00Z")
    draft = (await world.draft("2026-01")).invoice
    await world.issue(draft.id, override=Override(reason="it comes later"))
    own = [replace(each, final=True, output_tokens=90) for each in (provisional, taken)]
    await world.ship(own)
    assert await world.query("SELECT final, output_tokens FROM usage_record ORDER BY 2") == [
        (True, taken.output_tokens), (True, 90),
    ]  # fmt: skip


async def test_who_changes_a_record_waits_for_who_takes_it(world: InvoiceWorld) -> None:
    """An invoice that is being issued has the record, though nobody sees that yet."""
    await world.use("2026-01-05T00:00:00Z")
    draft = (await world.draft("2026-01")).invoice
    issuing = await world.engine.connect()
    await issue_invoice(issuing, draft.id, billed(), expected=[], by="fin")
    changing = asyncio.create_task(world.sql(CHANGES[0]))
    waiting = (
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    async with asyncio.timeout(20):
        while await world.query(waiting) != [(1,)]:  # noqa: ASYNC110 - SQL
            await asyncio.sleep(0.01)
    await issuing.commit()
    await issuing.close()
    with pytest.raises(DBAPIError, match="never changed or removed"):
        await changing


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
async def test_an_older_snapshot_changes_no_record(world: InvoiceWorld, isolation: str) -> None:
    """It does not see which records were taken since."""
    await world.use("2026-01-05T00:00:00Z")
    late = await world.engine.connect()
    await late.execution_options(isolation_level=isolation)
    await late.execute(text("SELECT FROM usage_record"))
    await world.close("2026-01")
    with pytest.raises(DBAPIError, match="READ COMMITTED only"):
        await late.execute(text(CHANGES[0]))
    await late.close()
