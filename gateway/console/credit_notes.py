"""Credit notes: the list, and one with the lines that it cites."""

from typing import Any

from litestar import get
from litestar.params import FromPath

from gateway.console.access import page
from gateway.console.lists import ROWS, given, paging
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission
from gateway.errors import Unprocessable

_PATH = "/console/money/credit-notes"


@get("/money/credit-notes", opt=page(Permission.INVOICES_READ))
async def list_credit_notes(visit: Here) -> Answer:
    """Of all tenants or one, or of an invoice, the latest first."""
    query = visit.query()
    filters = given(query, ("tenant_id", "invoice_id"))
    rows: list[dict[str, Any]] = []
    cursor = None
    status = 200
    desk = visit.parts.invoice_desk
    try:
        named = filters.get("invoice_id")
        found = await desk.credit_note_page(
            ROWS,
            query.optional("cursor"),
            tenant_id=filters.get("tenant_id"),
            invoice_id=None if named is None else await desk.named_invoice_id(named),
        )
        rows, cursor = found.items, found.next_cursor
    except Unprocessable as error:
        query.refused(error)
        status = error.status
    return visit.show(
        "invoices/credit_notes.html",
        status=status,
        form=query,
        filtered=bool(filters),
        rows=rows,
        **paging(_PATH, query, cursor, filters),
    )


@get("/money/credit-notes/{credit_note_id:str}", opt=page(Permission.INVOICES_READ))
async def show_credit_note(visit: Here, credit_note_id: FromPath[str]) -> Answer:
    """One, by its id or number."""
    desk = visit.parts.invoice_desk
    found = await desk.credit_note_id(credit_note_id)
    document = await desk.credit_document(found)
    return visit.show(
        "invoices/credit_note.html",
        note=await desk.show_credit_note(found),
        notes=document.notes,
    )


PAGES = (list_credit_notes, show_credit_note)
