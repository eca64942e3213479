"""Finance's verbs on invoices: drafts, issuing, voiding and payments, with those on credit notes
and the seller."""

from collections.abc import Awaitable, Callable, Iterable
from datetime import date, datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.invoicing.document import Document
from billing.domain.invoicing.issuing import Blocker, Override
from billing.domain.invoicing.lifecycle import RefusedChange, Status
from billing.domain.invoicing.periods import month
from billing.domain.invoicing.rounding import show_minor
from billing.postgres.credit_notes import list_credit_notes
from billing.postgres.invoice_draft import draft_invoice
from billing.postgres.invoice_issue import find_in_the_way, issue_invoice
from billing.postgres.invoice_scope import Scope
from billing.postgres.invoice_settle import (
    Paid,
    PaymentNotFound,
    note_payment,
    take_back_payment,
    void_invoice,
)
from billing.postgres.invoices import (
    InvoiceFilter,
    StoredInvoice,
    list_invoices,
    list_payments,
    load_document,
    load_invoice,
    store_time,
)
from billing.postgres.sellers import load_seller
from billing.postgres.unbilled import load_unbilled
from gateway.administration.billed import billed_as
from gateway.administration.checks import check_currency, check_tenant_id
from gateway.administration.credit_note_verbs import CreditNoteVerbs
from gateway.administration.invoice_checks import (
    as_id,
    check_minor,
    check_month,
    check_reason,
    check_reference,
    id_of_cursor,
)
from gateway.administration.invoice_figures import InvoiceFigures
from gateway.administration.invoice_views import (
    blocker_view,
    invoice_view,
    payment_view,
    standing_view,
)
from gateway.administration.pages import LIMIT_DEFAULT, Page, check_page_limit, page_of
from gateway.administration.store import Change
from gateway.administration.tenants import existing_tenant, named_tenant
from gateway.administration.views import View
from gateway.domain.tenant import Tenant
from gateway.errors import Conflict, NotFound

Expected = Callable[[Tenant, datetime], Awaitable[Iterable[Blocker]]]
"""What of a tenant may still come that was admitted before an instant."""


class InvoiceDesk(CreditNoteVerbs, InvoiceFigures):
    """The verbs. All raise StoreUnavailable where Postgres cannot be reached, NotFound, Conflict
    where the state forbids it, and Unprocessable naming the field that cannot be accepted."""

    def __init__(self, postgres: AsyncEngine, expected: Expected) -> None:
        super().__init__(postgres)
        self._expected = expected

    async def draft(
        self, actor: str, tenant_id: str, month_name: str, *, currency: str | None = None
    ) -> View:
        """The invoice of a tenant's month: drafted from what is there now, or as it was issued."""
        check_tenant_id(tenant_id, field="tenant_id")
        check_month(month_name, "UTC")
        if currency is not None:
            check_currency(currency)
        async with self._changing(actor) as change:
            tenant = await named_tenant(change.db, tenant_id)
            billed = billed_as(tenant, currency=currency or tenant.currency)
            drafted = await draft_invoice(change.db, billed, month_name, by=actor)
            if drafted.is_new:
                await _note(change, "invoice.draft", None, drafted.invoice)
            return await _shown(change.db, drafted.invoice, drafted.blockers)

    async def issue(
        self, actor: str, invoice_id: UUID, *, override_reason: str | None = None
    ) -> View:
        """Issue a draft, made anew from what is there now. Raises IssueBlocked with everything that
        stands in the way; a reason passes over what may still come, on record."""
        override = None
        if override_reason is not None:
            override = Override(reason=check_reason(override_reason, field="override.reason"))
        before, tenant, expected = await self._before_issue(invoice_id)
        asked_until = month(before.month, tenant.time_zone).end
        async with self._changing(actor) as change:
            tenant = await existing_tenant(change.db, before.tenant_id)
            if month(before.month, tenant.time_zone).end > asked_until:
                raise Conflict("its tenant's time zone was changed meanwhile: issue it again")
            issued = await issue_invoice(
                change.db,
                invoice_id,
                billed_as(tenant, currency=before.currency),
                expected=list(expected),
                override=override,
                by=actor,
            )
            if issued.is_new:
                await _note(change, "invoice.issue", before, issued.invoice)
        # Only now: the next number of its series is waited for until the commit.
        async with self._reading() as db:
            return await _shown(db, issued.invoice)

    async def in_the_way(self, invoice_id: UUID) -> list[View]:
        """What keeps a draft from being issued now, as far as is known without its records, which
        issuing it looks at. Of any other it is nothing."""
        before, tenant, expected = await self._before_issue(invoice_id)
        if before.status is not Status.DRAFT:
            return []
        async with self._reading() as db:
            scope = Scope(before.tenant_id, before.currency, month(before.month, tenant.time_zone))
            found = await find_in_the_way(
                db, scope, await load_seller(db), await store_time(db), expected
            )
        return [blocker_view(each) for each in found]

    async def _before_issue(
        self, invoice_id: UUID
    ) -> tuple[StoredInvoice, Tenant, Iterable[Blocker]]:
        """The invoice as it is, whose it is, and of a draft what may still come."""
        async with self._reading() as db:
            before = await load_invoice(db, invoice_id)
            tenant = await existing_tenant(db, before.tenant_id)
        if before.status is not Status.DRAFT:
            return before, tenant, ()
        end = month(before.month, tenant.time_zone).end
        return before, tenant, await self._expected(tenant, end)

    async def void(self, actor: str, invoice_id: UUID, *, reason: str) -> View:
        """Make an issued invoice void, on which nothing was paid or credited."""
        reason = check_reason(reason)
        async with self._changing(actor) as change:
            before = await load_invoice(change.db, invoice_id)
            voided = await void_invoice(change.db, invoice_id, reason=reason, by=actor)
            if voided.is_new:
                await _note(change, "invoice.void", before, voided.invoice)
            return await _shown(change.db, voided.invoice)

    async def pay(
        self,
        actor: str,
        invoice_id: UUID,
        *,
        amount: object,
        received_on: date,
        reference: str,
        may_overpay: bool = False,
    ) -> View:
        """Note a payment; the same reference again is the same payment. Of more than what is
        outstanding only where it `may_overpay`."""
        reference = check_reference(reference)
        async with self._changing(actor) as change:
            before = await load_invoice(change.db, invoice_id)
            minor = check_minor(amount, before.currency, field="amount")
            try:
                paid = await note_payment(
                    change.db,
                    invoice_id,
                    amount_minor=minor,
                    received_on=received_on,
                    reference=reference,
                    may_overpay=may_overpay,
                    by=actor,
                )
            except RefusedChange as error:
                raise _refused_payment(before, minor) or error from error
            return await _noted(change, "invoice.payment", paid)

    async def take_back(self, actor: str, invoice_id: UUID, named: str, *, reason: str) -> View:
        """Take back a payment, by its id or reference, whole: an entry of its own. The invoice is
        owed again where that leaves something outstanding."""
        reason = check_reason(reason)
        async with self._changing(actor) as change:
            try:
                paid = await take_back_payment(
                    change.db, invoice_id, as_id(named) or named, reason=reason, by=actor
                )
            except PaymentNotFound as error:
                raise NotFound(str(error)) from error
            return await _noted(change, "invoice.payment_taken_back", paid)

    async def show(self, invoice_id: UUID, *, with_unbilled: bool = True) -> View:
        """An invoice with its lines, payments and credit notes; with what no invoice has, for which
        all that its tenant ever used is looked at, or as if that were nothing."""
        async with self._reading() as db:
            invoice = await load_invoice(db, invoice_id)
            return await _shown(db, invoice, with_unbilled=with_unbilled)

    async def page(
        self,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
        *,
        wanted: InvoiceFilter = InvoiceFilter(),  # noqa: B008 - frozen
        with_drafts: bool = True,
    ) -> Page[View]:
        """Invoices without their lines, the latest drafted first."""
        check_page_limit(limit)
        if wanted.tenant_id is not None:
            check_tenant_id(wanted.tenant_id, field="tenant_id")
        if wanted.month is not None:
            check_month(wanted.month, "UTC")
        before = id_of_cursor(cursor)
        async with self._reading() as db:
            found = await list_invoices(
                db, wanted, limit=limit + 1, before=before, with_drafts=with_drafts
            )
        return page_of([(str(each.id), standing_view(each)) for each in found], limit)

    async def document(self, invoice_id: UUID) -> tuple[StoredInvoice, Document]:
        """What is printed on an invoice, and where that stands."""
        async with self._reading() as db:
            return await load_invoice(db, invoice_id), await load_document(db, invoice_id)


CREDIT_NOTES_SHOWN = 1000


async def _shown(
    db: AsyncConnection,
    invoice: StoredInvoice,
    blockers: Iterable[Blocker] = (),
    *,
    with_unbilled: bool = True,
) -> View:
    scope = Scope(invoice.tenant_id, invoice.currency, invoice.period)
    notes = await list_credit_notes(db, invoice_id=invoice.id, limit=CREDIT_NOTES_SHOWN)
    return invoice_view(
        invoice,
        await load_document(db, invoice.id),
        blockers=blockers,
        payments=await list_payments(db, invoice.id),
        credit_notes=notes,
        unbilled=await load_unbilled(db, scope) if with_unbilled else (),
    )


async def _note(
    change: Change, action: str, before: StoredInvoice | None, after: StoredInvoice
) -> None:
    await change.audit(
        action,
        "invoice",
        str(after.id),
        before=None if before is None else standing_view(before),
        after=standing_view(after),
    )


async def _noted(change: Change, action: str, paid: Paid) -> View:
    shown = payment_view(paid.payment, paid.invoice.currency)
    if paid.is_new:
        await change.audit(action, "invoice", str(paid.invoice.id), before=None, after=shown)
    return {**shown, "invoice": standing_view(paid.invoice)}


def _refused_payment(invoice: StoredInvoice, minor: int) -> Conflict | None:
    """Where it is more than what is outstanding, that in money."""
    outstanding = invoice.standing.outstanding_minor
    if invoice.status is not Status.ISSUED or minor <= outstanding:
        return None
    left = show_minor(outstanding, invoice.currency)
    return Conflict(f"only {left} {invoice.currency} of it are outstanding")
