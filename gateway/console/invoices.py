"""Invoices: the list with what they come to, and a new draft."""

from datetime import timedelta
from typing import Any

from litestar import get, post

from billing.domain.invoicing.lifecycle import Status
from billing.postgres.invoices import InvoiceFilter
from gateway.administration.invoice_checks import check_status
from gateway.console import budget_alerts, credit_notes, invoice, invoice_settling, seller
from gateway.console.access import page
from gateway.console.forms import Form
from gateway.console.invoice_words import STATUS_KINDS
from gateway.console.lists import ROWS, given, paging
from gateway.console.money_forms import CURRENCIES, TOLD
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.errors import Unprocessable

_PATH = "/console/money/invoices"
_FILTERS = ("tenant_id", "period", "status", "currency")
_STATUSES = [("", "any"), *((each.value, each.value) for each in Status)]


@get("/money/invoices", opt=page(Permission.INVOICES_READ))
async def list_invoices(visit: Here) -> Answer:
    """Those that the filters take, the latest drafted first, and what they come to."""
    query = visit.query()
    filters = given(query, _FILTERS)
    rows: list[dict[str, Any]] = []
    sums: list[dict[str, Any]] | None = None
    cursor = None
    status = 200
    desk = visit.parts.invoice_desk
    try:
        wanted = InvoiceFilter(
            tenant_id=filters.get("tenant_id"),
            month=filters.get("period"),
            currency=filters.get("currency"),
            status=check_status(filters.get("status")),
        )
        found = await desk.page(ROWS, query.optional("cursor"), wanted=wanted)
        rows, cursor = found.items, found.next_cursor
        sums = await desk.sums(wanted)
    except Unprocessable as error:
        query.refused(error)
        status = error.status
    return visit.show(
        "invoices/list.html",
        status=status,
        form=query,
        filtered=bool(filters),
        rows=rows,
        sums=sums,
        kinds=STATUS_KINDS,
        today=visit.today.isoformat(),
        statuses=_STATUSES,
        currencies=[("", "any"), *CURRENCIES],
        **paging(_PATH, query, cursor, filters),
    )


@get("/money/invoices/new", opt=page(Permission.INVOICES_WRITE))
async def show_new_draft(visit: Here) -> Answer:
    """Whose invoice of which month."""
    query = visit.query()
    filled = {name: query.text(name) for name in ("tenant_id", "period", "currency")}
    last = visit.today.replace(day=1) - timedelta(days=1)
    return _form_page(visit, Form.filled({**filled, "period": filled["period"] or f"{last:%Y-%m}"}))


@post("/money/invoices", opt=page(Permission.INVOICES_WRITE))
async def draft_invoice(visit: Here) -> Answer:
    """Draft it, or draft it anew; one that is issued stays as it is."""
    form = await visit.form()
    form.need("tenant_id", "period")
    if not form.ok:
        return _form_page(visit, form, status=422)
    try:
        drafted = await visit.parts.invoice_desk.draft(
            visit.actor,
            form.text("tenant_id"),
            form.text("period"),
            currency=form.optional("currency"),
        )
    except TOLD as error:
        return _form_page(visit, form.refused(error), status=error.status)
    return visit.go(f"{_PATH}/{drafted['id']}", said=invoice.drafted_words(drafted))


def _form_page(visit: Visit, form: Form, *, status: int = 200) -> Answer:
    return visit.show(
        "invoices/new.html",
        status=status,
        form=form,
        currencies=[("", "the tenant's own"), *CURRENCIES],
    )


PAGES = (
    list_invoices,
    show_new_draft,
    draft_invoice,
    *invoice.PAGES,
    *invoice_settling.PAGES,
    *credit_notes.PAGES,
    *seller.PAGES,
    *budget_alerts.PAGES,
)
