"""INV-7 in the database itself: whoever asks in SQL, an issued invoice never changes."""

import pytest
from invoice_world import InvoiceWorld
from settled_by_hand import PAID, credit_by_hand
from sqlalchemy.exc import DBAPIError

from billing.domain.invoicing.lifecycle import Status
from billing.postgres.invoices import load_document_bytes, load_invoice

CHANGES = [
    "UPDATE invoice SET total_minor = 0, subtotal_minor = 0",
    "UPDATE invoice SET document = 'x'",
    "UPDATE invoice SET number = 'INV-2026-000009'",
    "UPDATE invoice SET month = '2026-02'",
    "UPDATE invoice SET tenant_id = 'other'",
    "UPDATE invoice SET issued_at = issued_at + interval '1 day'",
    (
        "UPDATE invoice SET status = 'draft', number = NULL, issued_at = NULL, issued_by = NULL,"
        " due_on = NULL"
    ),
    "UPDATE invoice SET status = 'paid', paid_at = now()",
    "UPDATE invoice SET changes = changes + 1",
    "UPDATE invoice SET status = status",
    (
        "UPDATE invoice SET status = 'void', voided_at = now(), voided_by = 'x', void_reason = 'x',"
        " total_minor = 0, subtotal_minor = 0"
    ),
    "DELETE FROM invoice",
    "TRUNCATE invoice CASCADE",
    "UPDATE invoice_line SET quantity = quantity + 1",
    "DELETE FROM invoice_line",
    "TRUNCATE invoice_line CASCADE",
    (
        "INSERT INTO invoice_line SELECT invoice_id, 99, kind, month, model, provider, class,"
        " unit, 1, price_id, 0, 0, 0, 0 FROM invoice_line LIMIT 1"
    ),
    "UPDATE invoice_row SET void = true",
    "UPDATE invoice_row SET invoice_id = uuidv7()",
    "DELETE FROM invoice_row",
    "TRUNCATE invoice_row",
    (
        "INSERT INTO invoice_row (request_id, invoice_id, admitted_at)"
        " SELECT uuidv7(), id, now() FROM invoice"
    ),
    (
        "INSERT INTO invoice_row (request_id, invoice_id, admitted_at)"
        " VALUES (uuidv7(), uuidv7(), now())"
    ),
    (
        "INSERT INTO invoice_quarter SELECT invoice_id, bucket + interval '15 minutes', kind,"
        " month, model, provider, class, price_id, 1, 0, 0, 0, 0, 0 FROM invoice_quarter"
    ),
    "UPDATE invoice_quarter SET requests = requests + 1",
    "DELETE FROM invoice_quarter",
    "TRUNCATE invoice_quarter",
    "UPDATE invoice_number SET last = last + 2",
    "UPDATE invoice_number SET last = last - 1",
    "UPDATE invoice_number SET last = last + 1",
    "DELETE FROM invoice_number",
    "TRUNCATE invoice_number",
    "INSERT INTO invoice_number VALUES ('X-2026-', 2)",
    "INSERT INTO invoice_number VALUES ('X-2026-', 1)",
    "DELETE FROM seller",
    (
        "INSERT INTO invoice (tenant_id, currency, month, time_zone, period_start, period_end,"
        " status, number, subtotal_minor, tax_minor, total_minor, row_count, cost_pico, cut_off,"
        " document, content_hash, drafted_by, issued_at, issued_by, due_on)"
        " SELECT 'x', currency, month, time_zone, period_start, period_end, 'issued', 'N', 0, 0,"
        " 0, 0, 0, cut_off, document, content_hash, 'x', now(), 'x', now()::date FROM invoice"
    ),
]
SETTLED = [
    "UPDATE payment SET amount_minor = 1",
    "DELETE FROM payment",
    "TRUNCATE payment",
    "UPDATE credit_note SET reason = 'x'",
    "DELETE FROM credit_note",
    "TRUNCATE credit_note CASCADE",
    "UPDATE credit_note_line SET amount_minor = 1",
    "DELETE FROM credit_note_line",
    "TRUNCATE credit_note_line",
    "INSERT INTO credit_note_line SELECT credit_note_id, 9, invoice_id, 1, 1 FROM credit_note_line",
    (
        "INSERT INTO credit_note (invoice_id, tenant_id, currency, number, reason, net_minor,"
        " tax_minor, total_minor, document, content_hash, issued_at, issued_by)"
        " SELECT invoice_id, tenant_id, currency, 'CN-9', 'x', 1, 0, 1, document, content_hash,"
        " now(), 'x' FROM credit_note"
    ),
    "UPDATE invoice SET status = 'void', voided_at = now(), voided_by = 'x', void_reason = 'x'",
]


async def an_invoice(world: InvoiceWorld) -> None:
    """4.00 for a million tokens of output."""
    await world.use(
        "2026-01-05T00:00:00Z", prompt_tokens=0, cached_prompt_tokens=0, output_tokens=1_000_000
    )
    await world.close("2026-01")


async def everything(world: InvoiceWorld) -> list[object]:
    """All that there is of invoices."""
    tables = (
        "invoice", "invoice_line", "invoice_row", "invoice_quarter", "invoice_number", "payment",
        "credit_note", "credit_note_line", "seller",
    )  # fmt: skip
    return [await world.query(f"SELECT {name} FROM {name} ORDER BY 1") for name in tables]


@pytest.mark.parametrize("is_settled", [False, True])
async def test_no_statement_changes_what_is_issued(world: InvoiceWorld, is_settled: bool) -> None:
    """Each is refused whole, and leaves everything as it was."""
    await an_invoice(world)
    (invoice_id,) = (await world.query("SELECT id FROM invoice"))[0]
    if is_settled:
        await world.pay(invoice_id, 100)
        await world.credit(invoice_id, (1, 50))
    before = await everything(world)
    document = await world.read(load_document_bytes, invoice_id)
    for statement in [*CHANGES, *(SETTLED if is_settled else [])]:
        with pytest.raises(DBAPIError) as refused:
            await world.sql(statement)
        assert "23" in str(refused.value.orig.sqlstate)[:2], (statement, refused.value)  # type: ignore[union-attr]
        assert await everything(world) == before, statement
    assert await world.read(load_document_bytes, invoice_id) == document


async def test_credit_notes_never_exceed_their_line_in_sql(world: InvoiceWorld) -> None:
    """Also where whoever writes it does not ask the rules."""
    await an_invoice(world)
    (invoice_id,) = (await world.query("SELECT id FROM invoice"))[0]
    await world.credit(invoice_id, (1, 399))
    with pytest.raises(DBAPIError, match="never exceed"):
        await world.sql(*credit_by_hand(2))
    await world.sql(*credit_by_hand(1), PAID)


async def test_only_what_is_issued_is_settled_in_sql(world: InvoiceWorld) -> None:
    """Neither a draft nor a void invoice takes a payment or a credit note."""
    await an_invoice(world)
    (invoice_id,) = (await world.query("SELECT id FROM invoice"))[0]
    await world.void(invoice_id)
    draft = (await world.draft("2026-01")).invoice
    for settled in (invoice_id, draft.id):
        for statement in (
            (
                "INSERT INTO payment (invoice_id, amount_minor, received_on, reference, noted_by)"
                " VALUES (:id, 1, now()::date, 'x', 'x')"
            ),
            (
                "INSERT INTO credit_note (invoice_id, tenant_id, currency, number, reason,"
                " net_minor, tax_minor, total_minor, document, content_hash, issued_at, issued_by)"
                " SELECT id, tenant_id, currency, 'CN-9', 'x', 1, 0, 1, document, content_hash,"
                " now(), 'x' FROM invoice WHERE id = :id"
            ),
        ):
            with pytest.raises(DBAPIError, match="only an issued invoice"):
                await world.sql(statement, id=settled)


async def test_a_draft_can_be_thrown_away(world: InvoiceWorld) -> None:
    """It binds nobody."""
    draft = (await world.draft("2026-01")).invoice
    await world.sql("DELETE FROM invoice")
    assert await world.query("SELECT count(*) FROM invoice") == [(0,)]
    assert (await world.draft("2026-01")).invoice.id != draft.id


async def test_lines_that_are_not_the_total_are_not_issued(world: InvoiceWorld) -> None:
    """A draft cannot be made issued by hand with another total or without its rows."""
    await world.use("2026-01-05T00:00:00Z", output_tokens=1_000_000)
    await world.draft("2026-01")
    with pytest.raises(DBAPIError, match="total and its rows"):
        await world.sql(
            "UPDATE invoice SET status = 'issued', number = 'N', issued_at = now(),"
            " issued_by = 'x', due_on = now()::date"
        )


async def test_an_invoice_that_died_on_the_way_is_a_draft(world: InvoiceWorld) -> None:
    """V29: a crash between two statements leaves neither rows nor a number, and the next issue has
    both."""
    await world.use("2026-01-05T00:00:00Z", output_tokens=1_000_000)
    draft = (await world.draft("2026-01")).invoice
    await world.sql(
        "CREATE FUNCTION crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'crashed'; END $$",
        "CREATE TRIGGER crash AFTER UPDATE ON invoice FOR EACH ROW EXECUTE FUNCTION crash()",
    )
    with pytest.raises(DBAPIError, match="crashed"):
        await world.issue(draft.id)
    await world.sql("DROP TRIGGER crash ON invoice")
    assert await world.read(load_invoice, draft.id) == draft
    for table in ("invoice_row", "invoice_quarter", "invoice_line", "invoice_number"):
        assert await world.query(f"SELECT count(*) FROM {table}") == [(0,)]
    issued = (await world.issue(draft.id)).invoice
    assert (issued.status, issued.row_count) == (Status.ISSUED, 1)
    assert issued.number is not None
    assert issued.number.endswith("-000001")
