"""`/billing/v1/credit-notes` and `/billing/v1/seller`."""

from typing import Any

import msgspec
from litestar import Controller, Response, get, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery

from billing.domain.invoicing.party import Seller
from gateway.administration.credit_note_verbs import CreditNoteVerbs
from gateway.administration.tenant_views import own_credit_note
from gateway.administration.views import View, page_view
from gateway.domain.permissions import Permission
from gateway.http.access import Own, needs
from gateway.http.admin_bodies import read_body
from gateway.http.admin_requests import AdminRequest, actor_of
from gateway.http.documents import file_response, json_response, split_format
from gateway.http.guards import check_own, tenant_of
from gateway.http.invoice_bodies import CreditNoteBody, SellerBody
from gateway.http.openapi_answers import Page
from gateway.http.openapi_invoices import (
    CreditNoteAnswer,
    CreditNoteDocumentAnswer,
    CreditNoteSummaryAnswer,
    SellerAnswer,
)
from gateway.http.openapi_operations import described

Desk = NamedDependency[CreditNoteVerbs]


class CreditNoteController(Controller):
    """`/billing/v1/credit-notes`."""

    path = "/credit-notes"
    tags = ("credit notes",)

    @get(
        opt=described(Page[CreditNoteSummaryAnswer]) | needs(Permission.INVOICES_READ, own=Own.LIST)
    )
    async def list_credit_notes(
        self,
        request: AdminRequest,
        desk: Desk,
        *,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
        tenant_id: FromQuery[str | None] = None,
        invoice_id: FromQuery[str | None] = None,
    ) -> View:
        """Credit notes without their lines, the latest first; of a tenant or an invoice only."""
        held_to = tenant_of(request)
        if invoice_id is not None:
            await check_own(request, Own.INVOICE, invoice_id)
        of = None if invoice_id is None else await desk.named_invoice_id(invoice_id)
        page = await desk.credit_note_page(
            limit, cursor, tenant_id=held_to or tenant_id, invoice_id=of
        )
        if held_to is not None:
            return page_view(page, [own_credit_note(each) for each in page.items])
        return page_view(page, page.items)

    @post(opt=described(CreditNoteAnswer, body=CreditNoteBody) | needs(Permission.INVOICES_WRITE))
    async def issue_credit_note(self, request: AdminRequest, desk: Desk) -> View:
        """Credit lines of an issued invoice, never more than is left of them, or all that is left.
        It has its number at once, and nothing of it changes. The same `reference` again is the
        same credit note."""
        body = await read_body(request, CreditNoteBody)
        lines = body.lines
        return await desk.credit(
            actor_of(request),
            await desk.named_invoice_id(body.invoice_id),
            lines=None if lines is None else [(line.position, line.amount) for line in lines],
            reason=body.reason,
            reference=body.reference,
        )

    @get(
        "/{credit_note_id:str}",
        opt=described(CreditNoteAnswer, documents=CreditNoteDocumentAnswer)
        | needs(Permission.INVOICES_READ, own=Own.CREDIT_NOTE),
    )
    async def get_credit_note(
        self, request: AdminRequest, desk: Desk, credit_note_id: FromPath[str]
    ) -> Response[Any]:
        """A credit note, by its id or number, with the lines that it cites. With an ending it is a
        file of what is printed: `.json`, `.csv` or `.pdf`, always the same bytes."""
        named, wanted = split_format(credit_note_id)
        found = await desk.credit_note_id(named)
        if wanted is None:
            view = await desk.show_credit_note(found)
            return json_response(view if tenant_of(request) is None else own_credit_note(view))
        return await file_response(await desk.credit_document(found), wanted)


class SellerController(Controller):
    """`/billing/v1/seller`."""

    path = "/seller"
    tags = ("seller",)

    @get(opt=described(SellerAnswer, may_be_absent=True) | needs(Permission.INVOICES_READ))
    async def get_seller(self, desk: Desk) -> View:
        """Who sells; 404 where nobody has said so."""
        return await desk.seller()

    @put(opt=described(SellerAnswer, body=SellerBody) | needs(Permission.INVOICES_WRITE))
    async def put_seller(self, request: AdminRequest, desk: Desk) -> View:
        """Say who sells, whole, for what is issued from now on; what was issued keeps the one that
        it has."""
        body = await read_body(request, SellerBody)
        return await desk.set_seller(actor_of(request), Seller(**msgspec.structs.asdict(body)))
