"""Finance's verbs on credit notes, and on who sells."""

from collections.abc import Iterable
from uuid import UUID

from billing.domain.invoicing.credit import CreditExceeds, CreditLine
from billing.domain.invoicing.document import CreditDocument
from billing.domain.invoicing.numbering import PrefixTaken
from billing.domain.invoicing.party import Seller
from billing.domain.invoicing.rounding import show_minor
from billing.postgres.credit_notes import (
    issue_credit_note,
    list_credit_notes,
    load_credit_document,
    load_credit_note,
)
from billing.postgres.invoice_numbers import check_prefixes
from billing.postgres.invoices import load_invoice
from billing.postgres.sellers import load_seller, save_seller
from gateway.administration.checks import check_tenant_id
from gateway.administration.invoice_checks import (
    check_minor,
    check_reason,
    check_reference,
    check_seller,
    id_of_cursor,
)
from gateway.administration.invoice_transactions import InvoiceTransactions
from gateway.administration.invoice_views import (
    credit_note_summary,
    credit_note_view,
    seller_view,
)
from gateway.administration.pages import LIMIT_DEFAULT, Page, check_page_limit, page_of
from gateway.administration.views import View
from gateway.errors import NotFound, Unprocessable


class CreditNoteVerbs(InvoiceTransactions):
    """The verbs."""

    async def credit(
        self,
        actor: str,
        invoice_id: UUID,
        *,
        lines: Iterable[tuple[int, object]] | None,
        reason: str,
        reference: str | None = None,
    ) -> View:
        """A credit note of these lines with their net amounts; None is all that is left. The same
        reference again is the same credit note."""
        reason = check_reason(reason)
        reference = None if reference is None else check_reference(reference)
        async with self._changing(actor) as change:
            invoice = await load_invoice(change.db, invoice_id)
            wanted = None if lines is None else _cited(lines, invoice.currency)
            try:
                credited = await issue_credit_note(
                    change.db,
                    invoice_id,
                    wanted=wanted,
                    reason=reason,
                    reference=reference,
                    by=actor,
                )
            except CreditExceeds as error:
                left = show_minor(error.left_minor, invoice.currency)
                raise Unprocessable(
                    f"lines: line {error.position} has {left} {invoice.currency} left to credit",
                    param="lines",
                ) from error
            note = credited.credit_note
            if credited.is_new:
                await change.audit(
                    "credit_note.issue",
                    "credit_note",
                    str(note.id),
                    before=None,
                    after=credit_note_summary(note),
                )
            return credit_note_view(note, await load_credit_document(change.db, note.id))

    async def show_credit_note(self, note_id: UUID) -> View:
        """A credit note with its lines."""
        async with self._reading() as db:
            note = await load_credit_note(db, note_id)
            return credit_note_view(note, await load_credit_document(db, note_id))

    async def credit_note_owner(self, named: str) -> str | None:
        """The tenant whose credit note that is; None where there is none."""
        try:
            found = await self.credit_note_id(named)
            async with self._reading() as db:
                return (await load_credit_note(db, found)).tenant_id
        except NotFound:
            return None

    async def credit_note_page(
        self,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
        *,
        tenant_id: str | None = None,
        invoice_id: UUID | None = None,
    ) -> Page[View]:
        """Credit notes without their lines, the latest first."""
        check_page_limit(limit)
        if tenant_id is not None:
            check_tenant_id(tenant_id, field="tenant_id")
        before = id_of_cursor(cursor)
        async with self._reading() as db:
            found = await list_credit_notes(
                db, tenant_id=tenant_id, invoice_id=invoice_id, limit=limit + 1, before=before
            )
        return page_of([(str(each.id), credit_note_summary(each)) for each in found], limit)

    async def credit_document(self, note_id: UUID) -> CreditDocument:
        """What is printed on a credit note."""
        async with self._reading() as db:
            return await load_credit_document(db, note_id)

    async def seller(self) -> View:
        """Who sells. Raises NotFound where nobody has said so."""
        async with self._reading() as db:
            found = await load_seller(db)
        if found is None:
            raise NotFound("nobody has said who sells: weir seller set")
        return seller_view(found)

    async def set_seller(self, actor: str, seller: Seller) -> View:
        """Say who sells, for what is issued from now on. A prefix numbers one kind of document,
        whatever the seller was before."""
        checked = check_seller(seller)
        async with self._changing(actor) as change:
            before = await save_seller(change.db, checked, by=actor)
            try:
                await check_prefixes(change.db, checked)
            except PrefixTaken as error:
                raise Unprocessable(f"{error.field}: {error}", param=error.field) from error
            if before != checked:
                await change.audit(
                    "seller.set",
                    "seller",
                    "seller",
                    before=None if before is None else seller_view(before),
                    after=seller_view(checked),
                )
        return seller_view(checked)


def _cited(lines: Iterable[tuple[int, object]], currency: str) -> list[CreditLine]:
    return [
        CreditLine(
            position=position,
            amount_minor=check_minor(amount, currency, field=f"lines[{index}].amount"),
        )
        for index, (position, amount) in enumerate(lines)
    ]
