"""What settles an invoice, whoever writes it in SQL and whatever the isolation of who writes."""

from uuid import UUID

import pytest
from invoice_world import InvoiceWorld
from settled_by_hand import PAID, credit_by_hand, pay_by_hand
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.lifecycle import Status
from billing.postgres.invoices import StoredInvoice, list_payments, load_invoice

VOID = (
    "UPDATE invoice SET status = 'void', voided_at = now(), voided_by = 'x', void_reason = 'x'",
    "UPDATE invoice_row SET void = true",
)
ISSUE = (
    "UPDATE invoice SET status = 'issued', number = {0}, issued_at = now(), issued_by = 'x',"
    " due_on = now()::date"
)


async def an_invoice(world: InvoiceWorld) -> StoredInvoice:
    """4.00 for a million tokens of output, of which 0.50 was credited, so that there is a number
    to follow."""
    await world.use(
        "2026-01-05T00:00:00Z", prompt_tokens=0, cached_prompt_tokens=0, output_tokens=1_000_000
    )
    issued = (await world.close("2026-01")).invoice
    return (await world.credit(issued.id, (1, 50))).invoice


async def run(db: AsyncConnection, *statements: str) -> None:
    """Statements, each that of a transaction which is open."""
    for statement in statements:
        await db.execute(text(statement))


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE", "READ COMMITTED"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (credit_by_hand(200), credit_by_hand(200)),
        ((pay_by_hand(300),), (pay_by_hand(300, "again"),)),
        ((pay_by_hand(300),), credit_by_hand(200)),
        ((pay_by_hand(300),), VOID),
    ],
)
async def test_two_at_once_see_each_other(
    world: InvoiceWorld, isolation: str, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    """Whoever began before the other's commit fails rather than adds up what was there then:
    together they are never more than a line, than what is outstanding, or of something void."""
    await an_invoice(world)
    late = await world.engine.connect()
    await late.execution_options(isolation_level=isolation)
    await run(late, "SELECT FROM invoice")
    await world.sql(*first)
    with pytest.raises(DBAPIError) as refused:  # noqa: PT012 - some are refused at the commit
        await run(late, *second)
        await late.commit()
    await late.close()
    state = refused.value.orig.sqlstate  # type: ignore[union-attr]
    assert state == ("23001" if isolation == "READ COMMITTED" else "40001")


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
async def test_a_line_that_comes_meanwhile_is_not_missed(
    world: InvoiceWorld, isolation: str
) -> None:
    """Who issues by hand from an older snapshot fails where a line was added since."""
    await world.draft("2026-01")
    late = await world.engine.connect()
    await late.execution_options(isolation_level=isolation)
    await run(late, "SELECT FROM invoice")
    await world.sql(
        "INSERT INTO invoice_line SELECT id, 1, 'usage', month, 'm', 'self', 'batch', 'requests',"
        " 1, 1, 100, 100, 100, 0 FROM invoice"
    )
    with pytest.raises(DBAPIError) as refused:
        await run(
            late,
            "INSERT INTO invoice_number VALUES ('INV-2026-', 1)",
            ISSUE.format("'INV-2026-000001'"),
        )
    await late.close()
    assert refused.value.orig.sqlstate == "40001"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("number", "why"),
    [
        ("'CN-9'", "next number"),
        ("'CN-2026-000009'", "next number"),
        ("(SELECT number FROM credit_note)", "next number"),
        ("(SELECT number FROM invoice)", "next number"),
        ("(SELECT series || '000001' FROM invoice_number WHERE series LIKE 'CN-%')", "next number"),
    ],
)
async def test_a_credit_note_has_the_next_number(
    world: InvoiceWorld, number: str, why: str
) -> None:
    """None that is free, none that was, none that an invoice has."""
    await an_invoice(world)
    with pytest.raises(DBAPIError, match=why):
        await world.sql(*credit_by_hand(10, number=number))
    await world.sql(*credit_by_hand(10))


@pytest.mark.parametrize("of", [{"tenant": "'other'"}, {"currency": "'EUR'"}])
async def test_a_credit_note_is_of_its_invoice(world: InvoiceWorld, of: dict[str, str]) -> None:
    """Of the same tenant and currency, since lists are by these."""
    await an_invoice(world)
    with pytest.raises(DBAPIError, match="tenant and currency"):
        await world.sql(*credit_by_hand(10, **of))


@pytest.mark.parametrize(
    "number",
    [
        "'N'",
        "(SELECT number FROM credit_note)",
        "(SELECT series || '000500' FROM invoice_number WHERE series LIKE 'INV-%')",
        "(SELECT series || '000002' FROM invoice_number WHERE series LIKE 'INV-%')",
    ],
)
async def test_an_invoice_has_the_next_number(world: InvoiceWorld, number: str) -> None:
    """Neither one of nobody's series, nor one that a credit note has, nor one that its series has
    not come to: the next is taken with it."""
    await an_invoice(world)
    await world.draft("2026-02")
    with pytest.raises(DBAPIError, match="an invoice has the next number"):
        await world.sql(ISSUE.format(number) + " WHERE status = 'draft'")


async def test_a_prefix_numbers_one_kind_of_document(world: InvoiceWorld) -> None:
    """By the next number of its series and by the first of another year; what it numbers is never
    said anew."""
    await an_invoice(world)
    await world.draft("2026-02")
    kind = "a prefix numbers invoices or credit notes"
    for (series,) in await world.query("SELECT series FROM invoice_number ORDER BY 1"):
        prefix = series.split("-")[0]
        for taken, number in (
            (
                f"UPDATE invoice_number SET last = 2 WHERE series = '{series}'",
                f"'{series}000002'",
            ),
            (f"INSERT INTO invoice_number VALUES ('{prefix}-2999-', 1)", f"'{prefix}-2999-000001'"),
        ):
            written = (
                ISSUE.format(number) + " WHERE status = 'draft'"
                if prefix == "CN"
                else credit_by_hand(10, number=number)[1]
            )
            with pytest.raises(DBAPIError, match=kind):
                await world.sql(taken, written)
    for change in ("UPDATE number_prefix SET invoices = true", "DELETE FROM number_prefix"):
        with pytest.raises(DBAPIError, match="never changed"):
            await world.sql(change)


async def test_two_who_use_a_prefix_at_once(world: InvoiceWorld) -> None:
    """Whoever began before the other's commit fails."""
    async with world.engine.connect() as late:
        await late.execution_options(isolation_level="REPEATABLE READ")
        await run(late, "SELECT FROM number_prefix")
        await world.sql("SELECT number_prefix_is_of('X', true)")
        with pytest.raises(DBAPIError) as refused:
            await run(late, "SELECT number_prefix_is_of('X', false)")
    assert refused.value.orig.sqlstate == "40001"  # type: ignore[union-attr]
    assert await world.query("SELECT number_prefix_is_of('X', false)") == [(False,)]


@pytest.mark.parametrize("minor", [0, -1])
async def test_a_payment_is_more_than_nothing(world: InvoiceWorld, minor: int) -> None:
    await an_invoice(world)
    with pytest.raises(DBAPIError, match="payment_amount_check"):
        await world.sql(pay_by_hand(minor))


async def test_a_payment_of_too_much_says_so(world: InvoiceWorld) -> None:
    """And no other does: what is outstanding is the bound, to the cent."""
    invoice = await an_invoice(world)
    for minor, overpays in ((351, False), (350, True)):
        with pytest.raises(DBAPIError, match="more than what is outstanding, and no other"):
            await world.sql(pay_by_hand(minor, overpays=overpays), PAID)
    await world.sql(pay_by_hand(351, overpays=True), PAID)
    assert (await world.read(load_invoice, invoice.id)).standing.overpaid_minor == 1
    with pytest.raises(DBAPIError, match="more than what is outstanding, and no other"):
        await world.sql(pay_by_hand(1, "again"))
    await world.sql(pay_by_hand(1, "again", overpays=True))
    assert (await world.read(load_invoice, invoice.id)).standing.overpaid_minor == 2


async def test_an_invoice_is_paid_while_its_total_is(world: InvoiceWorld) -> None:
    """Who settles the last of it says so, and who takes it back; nobody else."""
    invoice = await an_invoice(world)
    with pytest.raises(DBAPIError, match="is paid while its total is"):
        await world.sql(pay_by_hand(350))
    with pytest.raises(DBAPIError, match="is paid while its total is"):
        await world.sql(*credit_by_hand(350))
    await world.sql(pay_by_hand(350), PAID)
    with pytest.raises(DBAPIError, match="whose total is paid stays so"):
        await world.sql("UPDATE invoice SET status = 'issued', paid_at = NULL")
    (payment,) = await world.read(list_payments, invoice.id)
    with pytest.raises(DBAPIError, match="is paid while its total is"):
        await world.sql(back(payment.id, -350))
    await world.sql(back(payment.id, -350), "UPDATE invoice SET status = 'issued', paid_at = NULL")
    assert (await world.read(load_invoice, invoice.id)).status is Status.ISSUED


async def test_a_payment_is_taken_back_whole_and_once(world: InvoiceWorld) -> None:
    """Nor is what takes it back, nor another invoice's."""
    invoice = await an_invoice(world)
    await world.pay(invoice.id, 100)
    (payment,) = await world.read(list_payments, invoice.id)
    for wrong in (back(payment.id, -99), back(UUID(int=7), -100)):
        with pytest.raises(DBAPIError, match="taken back whole"):
            await world.sql(wrong)
    for wrong in (back(payment.id, 100), back(payment.id, -100, reason="NULL")):
        with pytest.raises(DBAPIError, match=r"taken back whole|payment_amount_check"):
            await world.sql(wrong)
    await world.sql(back(payment.id, -100))
    with pytest.raises(DBAPIError, match="payment_reverses_key"):
        await world.sql(back(payment.id, -100, reference="again"))
    _, taken = await world.read(list_payments, invoice.id)
    with pytest.raises(DBAPIError, match=r"taken back whole|payment_amount_check"):
        await world.sql(back(taken.id, 100, reference="again"))


def back(
    payment_id: UUID, minor: int, *, reference: str = "taken back", reason: str = "'x'"
) -> str:
    """Take a payment back by hand."""
    return (
        "INSERT INTO payment (invoice_id, amount_minor, received_on, reference, noted_by, reverses,"
        f" reason) SELECT id, {minor}, now()::date, '{reference}', 'x', '{payment_id}', {reason}"
        " FROM invoice"
    )
