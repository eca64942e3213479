"""`/billing/v1/invoices`: drafts, issuing, voiding, payments, and the documents."""

from typing import Any

from litestar import Controller, Response, Router, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import FromPath, FromQuery

from billing.postgres.invoices import InvoiceFilter
from gateway.administration.invoice_checks import check_status
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.administration.tenant_views import own_invoice
from gateway.administration.views import View, page_view
from gateway.domain.permissions import Permission
from gateway.http.access import Own, needs, owned_by
from gateway.http.admin_bodies import read_body
from gateway.http.admin_requests import AdminRequest, actor_of
from gateway.http.credit_notes import CreditNoteController, SellerController
from gateway.http.documents import invoice_file, json_response, split_format
from gateway.http.guards import tenant_of
from gateway.http.invoice_bodies import (
    DraftBody,
    IssueBody,
    PaymentBody,
    TakeBackBody,
    VoidBody,
)
from gateway.http.openapi_answers import Page
from gateway.http.openapi_invoices import (
    InvoiceAnswer,
    InvoiceDocumentAnswer,
    InvoiceSummaryAnswer,
    NotedPaymentAnswer,
)
from gateway.http.openapi_operations import described

Desk = NamedDependency[InvoiceDesk]


class InvoiceController(Controller):
    """`/billing/v1/invoices`."""

    path = "/invoices"
    tags = ("invoices",)

    @get(opt=described(Page[InvoiceSummaryAnswer]) | needs(Permission.INVOICES_READ, own=Own.LIST))
    async def list_invoices(
        self,
        request: AdminRequest,
        desk: Desk,
        *,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
        tenant_id: FromQuery[str | None] = None,
        period: FromQuery[str | None] = None,
        currency: FromQuery[str | None] = None,
        status: FromQuery[str | None] = None,
    ) -> View:
        """Invoices without their lines, the latest drafted first; of a tenant, a month such as
        2026-11, a currency or a status (draft, issued, paid, void) only. A tenant's roles see its
        own, and no drafts."""
        held_to = tenant_of(request)
        wanted = InvoiceFilter(
            tenant_id=held_to or tenant_id,
            month=period,
            currency=currency,
            status=check_status(status),
        )
        page = await desk.page(limit, cursor, wanted=wanted, with_drafts=held_to is None)
        if held_to is not None:
            return page_view(page, [own_invoice(each) for each in page.items])
        return page_view(page, page.items)

    @post(opt=described(InvoiceAnswer, body=DraftBody) | needs(Permission.INVOICES_WRITE))
    async def draft_invoice(self, request: AdminRequest, desk: Desk) -> View:
        """Draft a tenant's invoice of a month, or draft it anew from the records that there are by
        now; the same again is the same invoice, and one that is issued stays as it is."""
        body = await read_body(request, DraftBody)
        return await desk.draft(
            actor_of(request), body.tenant_id, body.period, currency=body.currency
        )

    @get(
        "/{invoice_id:str}",
        opt=described(InvoiceAnswer, documents=InvoiceDocumentAnswer)
        | needs(Permission.INVOICES_READ, own=Own.INVOICE),
    )
    async def get_invoice(
        self, request: AdminRequest, desk: Desk, invoice_id: FromPath[str]
    ) -> Response[Any]:
        """An invoice, by its id or number, with its lines, payments and credit notes. With an
        ending it is a file of what is printed: `.json`, `.csv` or `.pdf`, of an issued one always
        the same bytes."""
        named, wanted = split_format(invoice_id)
        found = await desk.invoice_id(named)
        if wanted is None:
            is_own = tenant_of(request) is not None
            view = await desk.show(found, with_unbilled=not is_own)
            return json_response(own_invoice(view) if is_own else view)
        return await invoice_file(desk, found, wanted)

    @post(
        "/{invoice_id:str}/issue",
        status_code=200,
        opt=described(InvoiceAnswer, body=IssueBody, body_required=False)
        | needs(Permission.INVOICES_WRITE),
    )
    async def issue_invoice(
        self, request: AdminRequest, desk: Desk, invoice_id: FromPath[str]
    ) -> View:
        """Issue a draft from the records that there are by now: it gets its number, and nothing of
        it changes any more. Once issued it stays as it is. 409 with `blockers` while anything is in
        the way; with `override` it is issued although something may still come, on record."""
        body = await read_body(request, IssueBody, empty=IssueBody())
        reason = None if body.override is None else body.override.reason
        return await desk.issue(
            actor_of(request), await desk.invoice_id(invoice_id), override_reason=reason
        )

    @post(
        "/{invoice_id:str}/void",
        status_code=200,
        opt=described(InvoiceAnswer, body=VoidBody) | needs(Permission.INVOICES_WRITE),
    )
    async def void_invoice(
        self, request: AdminRequest, desk: Desk, invoice_id: FromPath[str]
    ) -> View:
        """Make an issued invoice void, of which nothing was paid or credited. It keeps its number,
        and its records are free for the month's next one."""
        body = await read_body(request, VoidBody)
        found = await desk.invoice_id(invoice_id)
        return await desk.void(actor_of(request), found, reason=body.reason)

    @post(
        "/{invoice_id:str}/payments",
        opt=described(NotedPaymentAnswer, body=PaymentBody) | needs(Permission.INVOICES_WRITE),
    )
    async def note_payment(
        self, request: AdminRequest, desk: Desk, invoice_id: FromPath[str]
    ) -> View:
        """Note a payment; the same `reference` again is the same payment. An invoice is paid once
        payments and credit notes come to its total."""
        body = await read_body(request, PaymentBody)
        return await desk.pay(
            actor_of(request),
            await desk.invoice_id(invoice_id),
            amount=body.amount,
            received_on=body.received_on,
            reference=body.reference,
            may_overpay=body.may_overpay,
        )

    @post(
        "/{invoice_id:str}/payments/{payment_id:str}/reverse",
        status_code=200,
        opt=described(NotedPaymentAnswer, body=TakeBackBody) | needs(Permission.INVOICES_WRITE),
    )
    async def take_back_payment(
        self,
        request: AdminRequest,
        desk: Desk,
        invoice_id: FromPath[str],
        payment_id: FromPath[str],
    ) -> View:
        """Take back a payment, by its id or reference, whole: an entry of its own, which is the
        answer. An invoice that was paid is issued again where something is outstanding then."""
        body = await read_body(request, TakeBackBody)
        found = await desk.invoice_id(invoice_id)
        return await desk.take_back(actor_of(request), found, payment_id, reason=body.reason)


def invoice_router(desk: InvoiceDesk) -> Router:
    """Invoices, credit notes and the seller; mounted under `/billing/v1`, whose guard they get."""

    async def invoice_owner(named: str) -> str | None:
        return await desk.invoice_owner(split_format(named)[0])

    async def credit_note_owner(named: str) -> str | None:
        return await desk.credit_note_owner(split_format(named)[0])

    return Router(
        "/",
        route_handlers=[InvoiceController, CreditNoteController, SellerController],
        dependencies={"desk": Provide(lambda: desk, sync_to_thread=False)},
        opt=owned_by({Own.INVOICE: invoice_owner, Own.CREDIT_NOTE: credit_note_owner}),
    )
