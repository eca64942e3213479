"""A seller, prices and customers' usage in a real Postgres, for tests of invoices."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from msgspec.structs import replace
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine
from usage_examples import a_record, an_admission

from billing.domain.invoicing.credit import CreditLine
from billing.domain.invoicing.issuing import Billed, Blocker, Override
from billing.domain.invoicing.party import Customer, Seller
from billing.domain.invoicing.tax import Tax
from billing.domain.price_book import Price, PriceBook
from billing.domain.rating import rated
from billing.domain.usage_record import UsageRecord
from billing.postgres.coarse_rollups import make_coarser
from billing.postgres.credit_notes import Credited, issue_credit_note
from billing.postgres.invoice_draft import Drafted, draft_invoice
from billing.postgres.invoice_issue import Issued, issue_invoice
from billing.postgres.invoice_settle import (
    Paid,
    Voided,
    note_payment,
    take_back_payment,
    void_invoice,
)
from billing.postgres.price_tables import price as price_table
from billing.postgres.prices import PRICE_COLUMNS, instant_of, price_from
from billing.postgres.rollups import roll_up
from billing.postgres.sellers import save_seller
from billing.postgres.usage_insert import JournaledRecord, insert_batch

MODEL = "smollm2-135m"
BEGINNING_MS = 1_577_836_800_000
"""2020-01-01."""
SELLER = Seller(name="Weir Test GmbH", address=("Am Wehr 1", "10115 Berlin"), country="DE")


def billed(tenant_id: str = "acme", **changes: Any) -> Billed:
    """A customer in USD and UTC without tax."""
    usual = Billed(
        customer=Customer(tenant_id=tenant_id, name=tenant_id.title()),
        currency="USD",
        time_zone="UTC",
        tax=Tax(name="VAT"),
    )
    return replace(usual, **changes)


def ms(at: str) -> int:
    """Unix milliseconds of an instant of ISO 8601."""
    return round(datetime.fromisoformat(at).astimezone(UTC).timestamp() * 1000)


class InvoiceWorld:
    """Each call is a transaction of its own."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.book = PriceBook()
        self._prices: list[Price] = []
        self._seq = 0

    async def open(self) -> None:
        """A seller, and one list price: 1.00 for a million prompt tokens, 0.10 cached, 4.00 out."""
        async with self.engine.begin() as db:
            await save_seller(db, SELLER, by="test")
        await self.price()

    async def price(self, **changes: Any) -> Price:
        """Write a price from the beginning of 2020 on, which may hold for what there is already."""
        values: dict[str, Any] = {
            "model": MODEL,
            "provider": "self",
            "currency": "USD",
            "input_pico": 1_000_000,
            "cached_input_pico": 100_000,
            "output_pico": 4_000_000,
            "effective_from": instant_of(BEGINNING_MS),
        }
        async with self.engine.begin() as db:
            made = insert(price_table).values(**{**values, **changes}).returning(*PRICE_COLUMNS)
            written = price_from((await db.execute(made)).one())
        self._prices.append(written)
        self.book = PriceBook(self._prices)
        return written

    async def use(self, at: str, *, currency: str | None = "USD", **changes: Any) -> UsageRecord:
        """One request admitted then, rated and shipped."""
        (record,) = await self.use_all([at], currency=currency, **changes)
        return record

    async def use_all(
        self, instants: Sequence[str], *, currency: str | None = "USD", **changes: Any
    ) -> list[UsageRecord]:
        """Several, as one shipment."""
        records = [
            rated(a_record(an_admission(ms(at)), **changes), self.book, currency) for at in instants
        ]
        await self.ship(records)
        return records

    async def ship(self, records: Sequence[UsageRecord]) -> None:
        """Write these records as a shipper does."""
        rows = []
        for record in records:
            self._seq += 1
            rows.append(JournaledRecord(record, "gw-1", 7, self._seq))
        async with self.engine.begin() as db:
            await insert_batch(db, rows)

    async def roll_up(self, *, coarser: bool = True) -> None:
        """Until every roll-up is made; where not `coarser`, those of quarters alone."""
        for make in (roll_up, make_coarser) if coarser else (roll_up,):
            while True:
                async with self.engine.begin() as db:
                    if not await make(db):
                        break

    async def draft(self, month: str, whom: Billed | None = None) -> Drafted:
        """The month's draft."""
        async with self.engine.begin() as db:
            return await draft_invoice(db, whom or billed(), month, by="fin")

    async def issue(
        self,
        invoice_id: UUID,
        whom: Billed | None = None,
        *,
        expected: Sequence[Blocker] = (),
        override: Override | None = None,
    ) -> Issued:
        """Issue a draft, or raise what it raises with nothing left behind."""
        async with self.engine.begin() as db:
            return await issue_invoice(
                db, invoice_id, whom or billed(), expected=expected, override=override, by="fin"
            )

    async def close(self, month: str, whom: Billed | None = None) -> Issued:
        """Draft and issue a month."""
        return await self.issue((await self.draft(month, whom)).invoice.id, whom)

    async def void(self, invoice_id: UUID) -> Voided:
        """Make one void."""
        async with self.engine.begin() as db:
            return await void_invoice(db, invoice_id, reason="wrong address", by="fin")

    async def pay(
        self,
        invoice_id: UUID,
        amount_minor: int,
        reference: str = "bank 1",
        *,
        may_overpay: bool = False,
    ) -> Paid:
        """Note a payment."""
        async with self.engine.begin() as db:
            return await note_payment(
                db,
                invoice_id,
                amount_minor=amount_minor,
                received_on=date(2026, 3, 1),
                reference=reference,
                may_overpay=may_overpay,
                by="fin",
            )

    async def take_back(
        self, invoice_id: UUID, named: UUID | str, reason: str = "of another customer"
    ) -> Paid:
        """Take back a payment."""
        async with self.engine.begin() as db:
            return await take_back_payment(db, invoice_id, named, reason=reason, by="fin")

    async def credit(
        self,
        invoice_id: UUID,
        *lines: tuple[int, int],
        reference: str | None = None,
    ) -> Credited:
        """Credit these positions and amounts, or all that is left."""
        wanted = [CreditLine(position=at, amount_minor=amount) for at, amount in lines]
        async with self.engine.begin() as db:
            return await issue_credit_note(
                db,
                invoice_id,
                wanted=wanted or None,
                reason="goodwill",
                reference=reference,
                by="fin",
            )

    async def query(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        async with self.engine.connect() as db:
            return [tuple(row) for row in await db.execute(text(statement), values)]

    async def sql(self, *statements: str, **values: object) -> None:
        """Change something by hand, in one transaction."""
        async with self.engine.begin() as db:
            for statement in statements:
                await db.execute(text(statement), values)

    async def read(self, reading: Any, *arguments: Any, **named: Any) -> Any:
        """What a function of the store says, called with a connection first."""
        async with self.engine.connect() as db:
            return await reading(db, *arguments, **named)
