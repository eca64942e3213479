"""A tenant's own invoices and credit notes: those that were issued, as they are printed. A draft is
nothing to its tenant, nor who of those who run Weir did what."""

from typing import Any

from litestar import Response, get
from litestar.params import FromPath

from billing.domain.invoicing.lifecycle import Status
from billing.postgres.invoices import InvoiceFilter
from gateway.administration.tenant_views import own_credit_note, own_invoice
from gateway.console.access import own_page
from gateway.console.forms import Form
from gateway.console.lists import ROWS, given, paging
from gateway.console.rendering import PAGE_HEADERS
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.errors import Unprocessable
from gateway.http.documents import file_response, invoice_file, split_format
from gateway.http.guards import nothing_there

_INVOICES, _NOTES = "/own/invoices", "/own/credit-notes"
_CONSOLE = "/console"
_READ = own_page(Permission.INVOICES_READ)
_STATUSES = (
    ("", "all"),
    (Status.ISSUED.value, "to be paid"),
    (Status.PAID.value, "paid"),
    (Status.VOID.value, "void"),
)


@get(_INVOICES, opt=_READ)
async def list_own_invoices(visit: Here) -> Answer:
    """Those that were issued, the latest first."""
    form = visit.query()
    cursor, status = form.optional("cursor"), form.optional("status")
    if status is not None and status not in dict(_STATUSES):
        form.errors["status"] = "must be one of those to choose from"
    found, next_cursor = [], None
    if form.ok:
        wanted = InvoiceFilter(
            tenant_id=visit.tenant_id, status=None if status is None else Status(status)
        )
        try:
            page = await visit.parts.invoice_desk.page(
                ROWS, cursor, wanted=wanted, with_drafts=False
            )
            found, next_cursor = [own_invoice(each) for each in page.items], page.next_cursor
        except Unprocessable as error:
            form.refused(error)
    return visit.show(
        "own/invoices.html",
        status=200 if form.ok else 422,
        invoices=found,
        form=form,
        statuses=_STATUSES,
        today=visit.today.isoformat(),
        **paging(_CONSOLE + _INVOICES, form, next_cursor, given(form, ("status",))),
    )


@get(_INVOICES + "/{invoice_id:str}", opt=_READ)
async def show_own_invoice(visit: Here, invoice_id: FromPath[str]) -> Response[Any]:
    """One of them, or with an ending its file."""
    named, wanted = split_format(invoice_id)
    desk = visit.parts.invoice_desk
    if await desk.invoice_owner(named) != visit.tenant_id:
        raise nothing_there()
    found = await desk.invoice_id(named)
    if wanted is not None:
        return _kept_from_caches(await invoice_file(desk, found, wanted))
    invoice = own_invoice(await desk.show(found, with_unbilled=False))
    return visit.show("own/invoice.html", invoice=invoice, today=visit.today.isoformat())


@get(_NOTES, opt=_READ)
async def list_own_credit_notes(visit: Here) -> Answer:
    """The tenant's credit notes, the latest first."""
    form = visit.query()
    cursor = form.optional("cursor")
    found, next_cursor = await _notes(visit, form, cursor)
    return visit.show(
        "own/credit_notes.html",
        status=200 if form.ok else 422,
        notes=found,
        form=form,
        **paging(_CONSOLE + _NOTES, form, next_cursor),
    )


@get(_NOTES + "/{credit_note_id:str}", opt=_READ)
async def show_own_credit_note(visit: Here, credit_note_id: FromPath[str]) -> Response[Any]:
    """One of them, or with an ending its file."""
    named, wanted = split_format(credit_note_id)
    desk = visit.parts.invoice_desk
    if await desk.credit_note_owner(named) != visit.tenant_id:
        raise nothing_there()
    found = await desk.credit_note_id(named)
    if wanted is not None:
        return _kept_from_caches(await file_response(await desk.credit_document(found), wanted))
    note = own_credit_note(await desk.show_credit_note(found))
    return visit.show("own/credit_note.html", note=note)


async def _notes(
    visit: Visit, form: Form, cursor: str | None
) -> tuple[list[dict[str, Any]], str | None]:
    try:
        page = await visit.parts.invoice_desk.credit_note_page(
            ROWS, cursor, tenant_id=visit.tenant_id
        )
    except Unprocessable as error:
        form.refused(error)
        return [], None
    return [own_credit_note(each) for each in page.items], page.next_cursor


def _kept_from_caches(file: Response[bytes]) -> Response[bytes]:
    for name, value in PAGE_HEADERS.items():
        file.headers[name] = value
    return file


PAGES = (
    list_own_invoices,
    show_own_invoice,
    list_own_credit_notes,
    show_own_credit_note,
)
