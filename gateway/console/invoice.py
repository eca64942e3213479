"""One invoice: what is on it and how it stands; drafted anew, issued, made void."""

from typing import Any
from uuid import UUID

from litestar import get, post
from litestar.params import FromPath

from gateway.administration.views import View
from gateway.console.access import page
from gateway.console.forms import Form
from gateway.console.invoice_words import STATUS_KINDS, advice_on
from gateway.console.money_forms import TOLD
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.errors import IssueBlocked

PATH = "/console/money/invoices"


@get("/money/invoices/{invoice_id:str}", opt=page(Permission.INVOICES_READ))
async def show_invoice(visit: Here, invoice_id: FromPath[str]) -> Answer:
    """Lines, taxes, payments, credit notes, and what is not billed yet."""
    found, shown = await load(visit, invoice_id)
    _, document = await visit.parts.invoice_desk.document(found)
    reversed_ids = {each["reverses"] for each in shown["payments"] if each["reverses"]}
    return visit.show(
        "invoices/invoice.html",
        invoice=shown,
        notes=document.notes,
        reversed_ids=reversed_ids,
        kinds=STATUS_KINDS,
        today=visit.today.isoformat(),
        advice=advice_on,
    )


@post("/money/invoices/{invoice_id:str}/draft", opt=page(Permission.INVOICES_WRITE))
async def draft_anew(visit: Here, invoice_id: FromPath[str]) -> Answer:
    """Make the draft from the records that there are by now."""
    _, shown = await load(visit, invoice_id)
    drafted = await visit.parts.invoice_desk.draft(
        visit.actor,
        shown["tenant_id"],
        shown["period"]["month"],
        currency=shown["currency"],
    )
    return visit.go(f"{PATH}/{drafted['id']}", said=drafted_words(drafted))


@get("/money/invoices/{invoice_id:str}/issue", opt=page(Permission.INVOICES_WRITE))
async def show_issue(visit: Here, invoice_id: FromPath[str]) -> Answer:
    """What issuing it means, and what stands in the way."""
    return await _issue_page(visit, invoice_id, Form.filled({"reason": None}))


@post("/money/invoices/{invoice_id:str}/issue", opt=page(Permission.INVOICES_WRITE))
async def issue_invoice(visit: Here, invoice_id: FromPath[str]) -> Answer:
    """Issue it, with a reason although something may still come."""
    form = await visit.form()
    desk = visit.parts.invoice_desk
    try:
        issued = await desk.issue(
            visit.actor,
            await desk.invoice_id(invoice_id),
            override_reason=form.optional("reason"),
        )
    except IssueBlocked as error:
        form.errors[""] = "It cannot be issued yet: nothing was changed."
        return await _issue_page(visit, invoice_id, form, status=409, blockers=error.blockers)
    except TOLD as error:
        refused = form.refused(error, {"override.reason": "reason"})
        return await _issue_page(visit, invoice_id, refused, status=error.status)
    return visit.go(f"{PATH}/{issued['id']}", said=f"It is issued as {issued['number']}.")


@get("/money/invoices/{invoice_id:str}/void", opt=page(Permission.INVOICES_WRITE))
async def show_void(visit: Here, invoice_id: FromPath[str]) -> Answer:
    """What making it void means."""
    return await _void_page(visit, invoice_id, Form.filled({"reason": None}))


@post("/money/invoices/{invoice_id:str}/void", opt=page(Permission.INVOICES_WRITE))
async def void_invoice(visit: Here, invoice_id: FromPath[str]) -> Answer:
    """Make it void."""
    form = await visit.form()
    form.need("reason")
    if not form.ok:
        return await _void_page(visit, invoice_id, form, status=422)
    desk = visit.parts.invoice_desk
    try:
        voided = await desk.void(
            visit.actor, await desk.invoice_id(invoice_id), reason=form.text("reason")
        )
    except TOLD as error:
        return await _void_page(visit, invoice_id, form.refused(error), status=error.status)
    return visit.go(f"{PATH}/{voided['id']}", said=f"{voided['number']} is void.")


async def load(visit: Visit, named: str) -> tuple[UUID, View]:
    """An invoice by its id or number, whole. Raises NotFound, Conflict."""
    desk = visit.parts.invoice_desk
    found = await desk.invoice_id(named)
    return found, await desk.show(found)


def drafted_words(drafted: View) -> str:
    """What came of drafting."""
    if drafted["status"] != "draft":
        return f"It is {drafted['status']} already and stays as it is."
    found = len(drafted["blockers"])
    if not found:
        return "Drafted from the records that there are now."
    things = "1 thing keeps" if found == 1 else f"{found} things keep"
    whats = "; ".join(str(each["what"]) for each in drafted["blockers"])
    return f"Drafted. {things} it from being issued: {whats}."


async def _issue_page(
    visit: Visit, named: str, form: Form, *, status: int = 200, blockers: Any = None
) -> Answer:
    found, shown = await load(visit, named)
    if blockers is None:
        blockers = await visit.parts.invoice_desk.in_the_way(found)
    return visit.show(
        "invoices/issue.html",
        status=status,
        invoice=shown,
        form=form,
        blockers=blockers,
        may_override=all(each["can_be_overridden"] for each in blockers),
        advice=advice_on,
    )


async def _void_page(visit: Visit, named: str, form: Form, *, status: int = 200) -> Answer:
    _, shown = await load(visit, named)
    return visit.show("invoices/void.html", status=status, invoice=shown, form=form)


PAGES = (
    show_invoice,
    draft_anew,
    show_issue,
    issue_invoice,
    show_void,
    void_invoice,
)
