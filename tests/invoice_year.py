"""A year of a tenant's usage and its invoices, drawn by chance: prices that change in mid-month,
records that come late or stay provisional, months that are skipped, voids and credit notes."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from invoice_examples import CUSTOMER, SELLER
from invoice_rows import UsedRow, groups_of, placed, rate_row
from msgspec.structs import replace

from billing.domain.invoicing.credit import CreditLine, CreditNote, credit, left_to_credit
from billing.domain.invoicing.document import Document, canonical_bytes
from billing.domain.invoicing.lifecycle import Standing, credited, issued, voided
from billing.domain.invoicing.lines import lines_of
from billing.domain.invoicing.numbering import date_of_issue, number_of, series_of
from billing.domain.invoicing.periods import Month, month, next_month
from billing.domain.invoicing.tax import Tax
from billing.domain.invoicing.totals import totals_of
from billing.domain.price_book import Price, PriceBook
from gateway.domain.instants import ms_of

MODELS = ("large", "small")
PROVIDERS = ("self", "hosted:example")
CLASSES = ("interactive", "batch")
MILLISECOND = timedelta(milliseconds=1)
TAXES = (
    Tax(rate_milli_percent=19_000, name="VAT"),
    Tax(rate_milli_percent=8_875, name="Sales tax"),
    Tax(name="VAT", note="Reverse charge."),
)


class SeenRow(UsedRow, kw_only=True):
    """A record, and from when on it is in Postgres and final."""

    seen_at: datetime
    final_at: datetime


@dataclass
class Issued:
    """An invoice, and what became of it."""

    document: Document
    content: bytes
    """As it was stored."""
    rows: list[SeenRow]
    invoiced: frozenset[str]
    """Months that had an invoice when it was issued."""
    standing: Standing
    notes: list[CreditNote] = field(default_factory=list)
    void: bool = False


class Year:
    """The tenant's year, one instant after the other."""

    def __init__(self, zone: str, currency: str, chance: Random) -> None:
        self.zone, self.currency, self.chance = zone, currency, chance
        self.tax = chance.choice(TAXES)
        self.months = [month("2026-01", zone)]
        while len(self.months) < 13:
            self.months.append(next_month(self.months[-1]))
        self.prices = self._draw_prices()
        book = PriceBook(self.prices)
        self.rows = [rate_row(row, book) for row in self._draw_rows(200)]
        self.invoices: list[Issued] = []

    @property
    def invoiced(self) -> frozenset[str]:
        """Months with an invoice that is not void."""
        return frozenset(each.document.period.name for each in self.invoices if not each.void)

    def go_by(self) -> None:
        """Month after month is closed some days after its end, or skipped; now and then an invoice
        is void or credited. In the end what is missing is made up for, when all is known."""
        for period in self.months[:-1]:
            if self.chance.random() < 0.8:
                self.issue(period, period.end + timedelta(hours=self.chance.randrange(1, 200)))
            if self.invoices and self.chance.random() < 0.2:
                self.void(self.chance.choice(self.invoices))
            if self.invoices and self.chance.random() < 0.4:
                self.credit(self.chance.choice(self.invoices))
        at_last = self.months[-1].end + timedelta(days=400)
        for period in self.months:
            self.issue(period, at_last)

    def issue(self, period: Month, at: datetime) -> None:
        """The invoice of a month from what is known at `at`; nothing where there is one."""
        if period.name in self.invoiced:
            return
        known = [row for row in self.rows if row.seen_at <= at]
        for row in known:
            row.final = row.final_at <= at
        found = placed(
            known, period=period, invoiced=self.invoiced, tenant_id="t", currency=self.currency
        )
        lines = lines_of(groups_of(found), self.currency, self.tax)
        totals = totals_of(lines, [self.tax])
        on = date_of_issue(at, SELLER.time_zone)
        document = Document(
            invoice_id=str(len(self.invoices)),
            number=number_of(series_of("INV", on), len(self.invoices) + 1),
            currency=self.currency,
            issued_at=at,
            issued_on=on,
            due_on=on,
            seller=SELLER,
            customer=CUSTOMER,
            period=period,
            lines=lines,
            totals=totals,
            row_count=len(found),
            cut_off=at,
        )
        rows = [row for row, _ in found]
        standing = issued(Standing(total_minor=totals.total_minor))
        self.invoices.append(
            Issued(document, canonical_bytes(document), rows, self.invoiced, standing)
        )
        for row in rows:
            assert row.invoice is None
            row.invoice = document.number

    def void(self, invoice: Issued) -> None:
        """Its records are free again; nothing where a credit note stands against it."""
        if invoice.void or invoice.notes:
            return
        invoice.standing, invoice.void = voided(invoice.standing), True
        for row in invoice.rows:
            row.invoice = None

    def credit(self, invoice: Issued) -> None:
        """A part of some lines, or all that is left."""
        lines, totals = invoice.document.lines, invoice.document.totals
        left = left_to_credit(lines, invoice.notes)
        if invoice.void or not left:
            return
        wanted = list(left)
        if self.chance.random() < 0.6:
            some = self.chance.sample(left, self.chance.randrange(1, len(left) + 1))
            wanted = [
                CreditLine(
                    position=line.position,
                    amount_minor=self.chance.randrange(1, line.amount_minor + 1),
                )
                for line in some
            ]
        note = credit(lines, totals, invoice.notes, wanted, "by chance")
        invoice.standing = credited(invoice.standing, note.total_minor)
        invoice.notes.append(note)

    def _draw_prices(self) -> list[Price]:
        """Of each model and provider from the beginning on, then changes at any millisecond: of one
        class, of this tenant, of another one."""
        prices = [
            self._a_price(model, provider, 0, None, None)
            for model in MODELS
            for provider in PROVIDERS
        ]
        taken = set()
        for _ in range(12):
            line = (
                self.chance.choice(MODELS),
                self.chance.choice(PROVIDERS),
                ms_of(self._an_instant()) or 0,
                self.chance.choice([None, *CLASSES]),
                self.chance.choice([None, None, "t", "another"]),
            )
            if line not in taken:
                taken.add(line)
                prices.append(self._a_price(*line))
        return [replace(price, id=index) for index, price in enumerate(prices, 1)]

    def _a_price(
        self, model: str, provider: str, from_ms: int, of_class: str | None, tenant: str | None
    ) -> Price:
        def pico() -> int:
            return self.chance.choice([0, 10**6, self.chance.randrange(10**9)])

        return Price(
            id=0,
            model=model,
            provider=provider,
            currency=self.currency,
            tenant_id=tenant,
            request_class=of_class,
            input_pico=pico(),
            cached_input_pico=self.chance.choice([None, pico()]),
            output_pico=pico(),
            reasoning_pico=self.chance.choice([None, pico()]),
            request_pico=self.chance.choice([0, self.chance.randrange(10**11)]),
            effective_from_ms=from_ms,
        )

    def _draw_rows(self, count: int) -> list[SeenRow]:
        """Records of the year, many on the edges of months and prices, few late or provisional."""
        edges = [bound for each in self.months for bound in (each.start, each.start - MILLISECOND)]
        for price in self.prices:
            begins = datetime.fromtimestamp(price.effective_from_ms / 1000, UTC)
            edges += [begins, begins - MILLISECOND] if price.effective_from_ms else []
        first, last = self.months[0].start, self.months[-1].start
        instants = [at for at in edges if first <= at < last]
        instants += [self._an_instant() for _ in range(count - len(instants))]
        return [self._a_row(at) for at in instants]

    def _a_row(self, at: datetime) -> SeenRow:
        late = timedelta(days=self.chance.choice([0, 0, 0, 0, 5, 20, 90, 300]), seconds=5)
        provisional = timedelta(days=self.chance.choice([0, 0, 0, 1, 40]))
        prompt, output = (self.chance.choice([0, 7, 10**9, 12_345]) for _ in range(2))
        return SeenRow(
            admitted_at=at,
            currency=self.currency if self.chance.random() < 0.95 else "EUR",
            tenant_id="t" if self.chance.random() < 0.95 else "another",
            model=self.chance.choice(MODELS),
            provider=self.chance.choice(PROVIDERS),
            request_class=self.chance.choice(CLASSES),
            prompt_tokens=prompt,
            cached_prompt_tokens=self.chance.choice([0, prompt // 3, prompt + 5]),
            output_tokens=output,
            reasoning_tokens=self.chance.choice([0, output // 2, output + 1]),
            billable=self.chance.random() < 0.9,
            seen_at=at + late,
            final_at=at + late + provisional,
        )

    def _an_instant(self) -> datetime:
        first, last = self.months[0].start, self.months[-1].start
        return first + self.chance.randrange((last - first) // MILLISECOND) * MILLISECOND
