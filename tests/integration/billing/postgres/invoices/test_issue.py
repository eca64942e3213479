"""From rows to an issued invoice: what is on it, once, whoever asks and however often."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from invoice_world import InvoiceWorld, billed

from billing.domain.invoicing.document import content_hash
from billing.domain.invoicing.issuing import Blocker, IssueRefused, Obstacle, Override
from billing.domain.invoicing.lifecycle import RefusedChange, Status
from billing.domain.invoicing.tax import Tax
from billing.postgres.invoices import load_document, load_document_bytes

NOT_SHIPPED = Blocker(
    obstacle=Obstacle.GATEWAY_BEHIND, subject="gw-2", what="gateway gw-2 has not shipped"
)


async def test_a_month_is_its_rows(world: InvoiceWorld) -> None:
    """V06, V10, V11: half-open in instants, by the time in the id, whenever it was recorded: the
    last millisecond is in, the first of the next month is not."""
    inside = await world.use_all(
        ["2026-01-01T00:00:00Z", "2026-01-31T14:59:00Z", "2026-01-31T23:59:59.999Z"],
        prompt_tokens=1_000_000,
        cached_prompt_tokens=200_000,
        output_tokens=500_000,
    )
    await world.use_all(["2025-12-31T23:59:59.999Z", "2026-02-01T00:00:00Z"])
    await world.use("2026-01-05T00:00:00Z", tenant_id="other")
    await world.use("2026-01-05T00:00:00Z", billable=False)
    issued = (await world.close("2026-01", billed(tax=Tax(rate_milli_percent=19_000)))).invoice
    # Each of the three: 0.80 + 0.02 + 2.00.
    assert (issued.subtotal_minor, issued.tax_minor, issued.total_minor) == (846, 161, 1007)
    assert (issued.status, issued.number) == (Status.ISSUED, f"INV-{datetime.now(UTC).year}-000001")
    assert issued.row_count == 3
    assert issued.cost_pico == sum(record.cost_pico or 0 for record in inside)
    document = await world.read(load_document, issued.id)
    assert [(line.unit, line.quantity, line.amount_minor) for line in document.lines] == [
        ("input_tokens", 2_400_000, 240),
        ("cached_input_tokens", 600_000, 6),
        ("output_tokens", 1_500_000, 600),
    ]
    assert content_hash(document) == issued.content_hash
    stored = await world.query("SELECT position, quantity, amount_minor FROM invoice_line")
    assert sorted(stored) == [(1, 2_400_000, 240), (2, 600_000, 6), (3, 1_500_000, 600)]
    rows = await world.query("SELECT request_id FROM invoice_row")
    assert {row for (row,) in rows} == {record.request_id for record in inside}


async def test_the_period_is_that_of_the_tenants_zone(world: InvoiceWorld) -> None:
    """V02: bounds are kept as instants; a second run in another process's zone finds them."""
    await world.use_all(["2025-12-31T22:59:59Z", "2025-12-31T23:00:00Z", "2026-01-31T22:59:59Z"])
    budapest = billed(time_zone="Europe/Budapest")
    issued = (await world.close("2026-01", budapest)).invoice
    assert issued.row_count == 2
    assert issued.period_start == datetime(2025, 12, 31, 23, tzinfo=UTC)
    assert (await world.draft("2026-01", budapest)).invoice == issued
    december = (await world.close("2025-12", budapest)).invoice
    assert december.row_count == 1


async def test_a_draft_is_made_anew_and_stays_one(world: InvoiceWorld) -> None:
    """V29, V31: drafting twice is one draft, whose lines do not double; what came meanwhile is on
    it. Once issued it stays as it is, and issuing it again changes nothing."""
    await world.use("2026-01-05T00:00:00Z")
    first = await world.draft("2026-01")
    again = await world.draft("2026-01")
    assert (first.is_new, again.is_new) == (True, False)
    assert again.invoice.id == first.invoice.id
    document = await world.read(load_document, first.invoice.id)
    assert len(document.lines) == 3
    assert (document.number, document.row_count) == (None, 1)
    await world.use("2026-01-06T00:00:00Z")
    assert (await world.draft("2026-01")).invoice.row_count == 2
    issued = await world.issue(first.invoice.id)
    second = await world.issue(first.invoice.id)
    assert (issued.is_new, second.is_new) == (True, False)
    assert second.invoice == issued.invoice == (await world.draft("2026-01")).invoice
    assert await world.query("SELECT last FROM invoice_number") == [(1,)]


async def test_twenty_at_once_make_one(world: InvoiceWorld) -> None:
    """V30, V35: twenty drafts and twenty issues of one month at once: one invoice, one number, each
    row once."""
    await world.use_all([f"2026-01-05T00:00:{second:02d}Z" for second in range(50)])

    async def close() -> tuple[object, bool]:
        made = await world.close("2026-01")
        return made.invoice, made.is_new

    found = await asyncio.gather(*(close() for _ in range(20)))
    assert len({str(invoice) for invoice, _ in found}) == 1
    assert sum(is_new for _, is_new in found) == 1
    assert await world.query("SELECT count(*), count(DISTINCT request_id) FROM invoice_row") == [
        (50, 50)
    ]
    assert await world.query("SELECT count(*), max(number) FROM invoice") == [
        (1, f"INV-{datetime.now(UTC).year}-000001")
    ]


async def test_numbers_have_no_gaps(world: InvoiceWorld) -> None:
    """Many tenants at once, some of which are refused: numbers follow each other."""
    for number in range(8):
        await world.use(
            "2026-01-05T00:00:00Z",
            tenant_id=f"t{number}",
            model="unknown" if number % 4 == 3 else "smollm2-135m",
        )
    results = await asyncio.gather(
        *(world.close("2026-01", billed(f"t{number}")) for number in range(8)),
        return_exceptions=True,
    )
    refused = [each for each in results if isinstance(each, IssueRefused)]
    assert len(refused) == 2
    numbers = await world.query("SELECT number FROM invoice WHERE number IS NOT NULL ORDER BY 1")
    year = datetime.now(UTC).year
    assert numbers == [(f"INV-{year}-{n:06d}",) for n in range(1, 7)]


async def test_an_unpriced_row_blocks(world: InvoiceWorld) -> None:
    """A model without a price is named and counted, and is never 0; other months are not held up.
    No override passes it. A tenant whose currency nobody knew is unpriced in each."""
    await world.use("2026-01-05T00:00:00Z")
    await world.use_all(["2026-01-06T00:00:00Z", "2026-01-07T00:00:00Z"], model="new")
    await world.use("2026-01-08T00:00:00Z", currency=None)
    await world.use("2026-02-05T00:00:00Z")
    draft = await world.draft("2026-01")
    assert draft.invoice.row_count == 1
    for override in (None, Override(reason="hurry")):
        with pytest.raises(IssueRefused) as refused:
            await world.issue(draft.invoice.id, override=override)
        assert [(b.obstacle, b.subject, b.count) for b in refused.value.blockers] == [
            (Obstacle.UNPRICED, "new self interactive", 2),
            (Obstacle.UNPRICED, "smollm2-135m self interactive", 1),
        ]
    assert await world.query("SELECT count(*) FROM invoice_row") == [(0,)]
    assert await world.query("SELECT count(*) FROM invoice_number") == [(0,)]
    assert (await world.close("2026-02")).invoice.row_count == 1


async def test_what_may_still_come_can_be_overridden(world: InvoiceWorld) -> None:
    """Rows that are not final, a gateway that is behind and letters that wait refuse it, all named
    at once; with finance's word it is issued without them, and that is on record."""
    await world.use("2026-01-05T00:00:00Z")
    await world.use("2026-01-06T00:00:00Z", final=False)
    await world.sql(
        "INSERT INTO usage_dead_letter (gateway_id, source, reason, payload)"
        " VALUES ('gw-3', '1/1', 'x', '')"
    )
    draft = await world.draft("2026-01")
    with pytest.raises(IssueRefused) as refused:
        await world.issue(draft.invoice.id, expected=[NOT_SHIPPED])
    assert [each.obstacle for each in refused.value.blockers] == [
        Obstacle.GATEWAY_BEHIND,
        Obstacle.DEAD_LETTERS,
        Obstacle.NOT_FINAL,
    ]
    made = await world.issue(
        draft.invoice.id, expected=[NOT_SHIPPED], override=Override(reason="year's end")
    )
    assert made.invoice.row_count == 1
    assert made.invoice.override is not None
    assert made.invoice.override["reason"] == "year's end"
    assert len(made.invoice.override["blockers"]) == 3


async def test_a_period_that_runs_is_not_issued(world: InvoiceWorld) -> None:
    """It can be drafted; no override passes it."""
    now = datetime.now(UTC)
    await world.use((now - timedelta(minutes=1)).isoformat())
    draft = await world.draft(f"{now - timedelta(minutes=1):%Y-%m}")
    assert draft.invoice.row_count == 1
    with pytest.raises(IssueRefused) as refused:
        await world.issue(draft.invoice.id, override=Override(reason="hurry"))
    assert [each.obstacle for each in refused.value.blockers] == [Obstacle.PERIOD_OPEN]


async def test_nothing_is_issued_without_a_seller(world: InvoiceWorld) -> None:
    """It would have no name on it."""
    draft = await world.draft("2026-01")
    await world.sql("ALTER TABLE seller DISABLE TRIGGER USER", "DELETE FROM seller")
    with pytest.raises(IssueRefused) as refused:
        await world.issue(draft.invoice.id)
    assert [each.obstacle for each in refused.value.blockers] == [Obstacle.NO_SELLER]


async def test_roll_ups_that_differ_block(world: InvoiceWorld) -> None:
    """A roll-up that nobody marked and that says something else; one that is marked does not, nor
    one that is right."""
    await world.use("2026-01-05T00:00:00Z")
    draft = await world.draft("2026-01")
    await world.roll_up()
    await world.sql("UPDATE usage_rollup SET cost_pico = cost_pico + 1")
    with pytest.raises(IssueRefused) as refused:
        await world.issue(draft.invoice.id, override=Override(reason="hurry"))
    (blocker,) = refused.value.blockers
    assert (blocker.obstacle, blocker.subject) == (Obstacle.ROLLUPS_DIFFER, "2026-01-05T00:00Z")
    await world.use("2026-01-05T00:01:00Z")
    assert (await world.issue(draft.invoice.id)).invoice.row_count == 2


async def test_a_month_of_nothing(world: InvoiceWorld) -> None:
    """An invoice of 0 without lines, which is paid at once."""
    made = (await world.close("2026-01")).invoice
    assert (made.total_minor, made.row_count, made.status) == (0, 0, Status.PAID)


async def test_a_row_is_one_request(world: InvoiceWorld) -> None:
    """V24, V25, V26, V27, V28, V34: rows are told apart by the gateway's own id. Shipped twice
    it is billed once; two of the same kind at the same millisecond are two."""
    records = await world.use_all(["2026-01-05T00:00:00Z"] * 2)
    await world.ship(records)
    assert (await world.close("2026-01")).invoice.row_count == 2


async def test_the_same_rows_give_the_same_lines(world: InvoiceWorld) -> None:
    """Whatever order they came in, and after a void: only the number and the dates differ."""
    await world.use_all(["2026-01-07T00:00:00Z", "2026-01-05T00:00:00Z"])
    await world.use("2026-01-06T00:00:00Z", request_class="batch")
    first = await world.close("2026-01")
    document = await world.read(load_document, first.invoice.id)
    before = await world.read(load_document_bytes, first.invoice.id)
    assert (await world.void(first.invoice.id)).is_new
    assert not (await world.void(first.invoice.id)).is_new
    with pytest.raises(RefusedChange):
        await world.issue(first.invoice.id)
    second = await world.close("2026-01")
    again = await world.read(load_document, second.invoice.id)
    assert again.lines == document.lines
    assert again.number == f"INV-{datetime.now(UTC).year}-000002"
    assert await world.read(load_document_bytes, first.invoice.id) == before
    assert await world.query("SELECT void, count(*) FROM invoice_row GROUP BY 1 ORDER BY 1") == [
        (False, 3),
        (True, 3),
    ]
