"""Invoices and credit notes."""

from litestar import get

from gateway.console.access import page
from gateway.console.visit import Answer, Here
from gateway.domain.permissions import Permission


@get("/money/invoices", opt=page(Permission.INVOICES_READ))
async def list_invoices(visit: Here) -> Answer:
    """All invoices, the latest first."""
    return visit.show("invoices/list.html")


@get("/money/credit-notes", opt=page(Permission.INVOICES_READ))
async def list_credit_notes(visit: Here) -> Answer:
    """All credit notes, the latest first."""
    return visit.show("invoices/credit_notes.html")


PAGES = (list_invoices, list_credit_notes)
