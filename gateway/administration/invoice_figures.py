"""Figures about invoices that pages show beside them: what they come to together, and what of one
is left to credit."""

from collections import defaultdict
from uuid import UUID

from billing.domain.invoicing.credit import left_to_credit
from billing.domain.invoicing.lifecycle import Status
from billing.domain.invoicing.rounding import show_minor
from billing.postgres.credit_notes import notes_of
from billing.postgres.invoice_sums import Sums, sum_invoices
from billing.postgres.invoices import InvoiceFilter, load_document, load_invoice
from gateway.administration.checks import check_tenant_id
from gateway.administration.invoice_checks import check_month
from gateway.administration.invoice_transactions import InvoiceTransactions
from gateway.administration.views import View


class InvoiceFigures(InvoiceTransactions):
    """The readings."""

    async def sums(self, wanted: InvoiceFilter) -> list[View] | None:
        """What they come to, a currency each: drafts for themselves, and of what is issued or paid
        the total, what was paid and credited of it and what is outstanding; void ones are counted.
        None where neither a tenant nor a month is named: all are too many to add up for a page."""
        if wanted.tenant_id is None and wanted.month is None:
            return None
        if wanted.tenant_id is not None:
            check_tenant_id(wanted.tenant_id, field="tenant_id")
        if wanted.month is not None:
            check_month(wanted.month, "UTC")
        async with self._reading() as db:
            found = await sum_invoices(db, wanted)
        by_currency: defaultdict[str, list[Sums]] = defaultdict(list)
        for each in found:
            by_currency[each.currency].append(each)
        return [_sums_view(currency, some) for currency, some in by_currency.items()]

    async def left_to_credit(self, invoice_id: UUID) -> dict[int, str]:
        """What of each line may still be credited, net, by its position; a line of which nothing is
        left is not in it."""
        async with self._reading() as db:
            known = await load_invoice(db, invoice_id)
            document = await load_document(db, invoice_id)
            notes = await notes_of(db, invoice_id)
        return {
            line.position: show_minor(line.amount_minor, known.currency)
            for line in left_to_credit(document.lines, notes)
        }


def _sums_view(currency: str, found: list[Sums]) -> View:
    billed = [each for each in found if each.status in (Status.ISSUED, Status.PAID)]
    drafts = [each for each in found if each.status is Status.DRAFT]

    def shown(minor: int) -> str:
        return show_minor(minor, currency)

    return {
        "currency": currency,
        "billed": sum(each.invoices for each in billed),
        "total": shown(sum(each.total_minor for each in billed)),
        "paid": shown(sum(each.paid_minor for each in billed)),
        "credited": shown(sum(each.credited_minor for each in billed)),
        "outstanding": shown(sum(each.outstanding_minor for each in billed)),
        "drafts": sum(each.invoices for each in drafts),
        "drafts_total": shown(sum(each.total_minor for each in drafts)),
        "void": sum(each.invoices for each in found if each.status is Status.VOID),
    }
