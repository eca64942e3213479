"""What settles an invoice: payments, those that are taken back, and credit notes."""

from litestar import get, post
from litestar.params import FromPath

from gateway.administration.views import View
from gateway.console.access import page
from gateway.console.forms import Form
from gateway.console.invoice import PATH, load
from gateway.console.money_forms import TOLD
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.errors import NotFound

_LINE = "line-"


@get("/money/invoices/{invoice_id:str}/payments", opt=page(Permission.INVOICES_WRITE))
async def show_payment(visit: Here, invoice_id: FromPath[str]) -> Answer:
    """The form for a payment, of what is outstanding."""
    _, shown = await load(visit, invoice_id)
    form = Form.filled(
        {"amount": shown["outstanding"], "received_on": visit.today, "reference": None}
    )
    return _payment_page(visit, shown, form)


@post("/money/invoices/{invoice_id:str}/payments", opt=page(Permission.INVOICES_WRITE))
async def note_payment(visit: Here, invoice_id: FromPath[str]) -> Answer:
    """Note it; the same reference again is the same payment."""
    form = await visit.form()
    form.need("amount", "received_on", "reference")
    received_on = form.day("received_on")
    found, shown = await load(visit, invoice_id)
    if not form.ok or received_on is None:
        return _payment_page(visit, shown, form, status=422)
    try:
        noted = await visit.parts.invoice_desk.pay(
            visit.actor,
            found,
            amount=form.text("amount"),
            received_on=received_on,
            reference=form.text("reference"),
            may_overpay=form.flag("may_overpay"),
        )
    except TOLD as error:
        return _payment_page(visit, shown, form.refused(error), status=error.status)
    left = noted["invoice"]
    rest = "It is paid." if left["status"] == "paid" else f"{left['outstanding']} is outstanding."
    return visit.go(
        f"{PATH}/{found}",
        said=f"A payment of {noted['amount']} {noted['currency']} is noted. {rest}",
    )


@get(
    "/money/invoices/{invoice_id:str}/payments/{payment_id:str}/take-back",
    opt=page(Permission.INVOICES_WRITE),
)
async def show_take_back(
    visit: Here, invoice_id: FromPath[str], payment_id: FromPath[str]
) -> Answer:
    """What taking it back means."""
    _, shown = await load(visit, invoice_id)
    return _take_back_page(visit, shown, payment_id, Form.filled({"reason": None}))


@post(
    "/money/invoices/{invoice_id:str}/payments/{payment_id:str}/take-back",
    opt=page(Permission.INVOICES_WRITE),
)
async def take_back_payment(
    visit: Here, invoice_id: FromPath[str], payment_id: FromPath[str]
) -> Answer:
    """Take it back, whole."""
    form = await visit.form()
    form.need("reason")
    found, shown = await load(visit, invoice_id)
    if not form.ok:
        return _take_back_page(visit, shown, payment_id, form, status=422)
    try:
        await visit.parts.invoice_desk.take_back(
            visit.actor, found, payment_id, reason=form.text("reason")
        )
    except TOLD as error:
        return _take_back_page(visit, shown, payment_id, form.refused(error), status=error.status)
    return visit.go(f"{PATH}/{found}", said="The payment is taken back.")


@get("/money/invoices/{invoice_id:str}/credit", opt=page(Permission.INVOICES_WRITE))
async def show_credit(visit: Here, invoice_id: FromPath[str]) -> Answer:
    """What of each line is left to credit."""
    form = Form.filled({"what": "all", "reason": None, "reference": None})
    return await _credit_page(visit, invoice_id, form)


@post("/money/invoices/{invoice_id:str}/credit", opt=page(Permission.INVOICES_WRITE))
async def issue_credit_note(visit: Here, invoice_id: FromPath[str]) -> Answer:
    """Credit some lines, or all that is left."""
    form = await visit.form()
    form.need("reason")
    lines = None if form.text("what") == "all" else _cited(form)
    if lines is not None and not lines:
        form.errors[""] = "Say an amount at one line at least, or credit all that is left."
    if not form.ok:
        return await _credit_page(visit, invoice_id, form, status=422)
    desk = visit.parts.invoice_desk
    try:
        note = await desk.credit(
            visit.actor,
            await desk.invoice_id(invoice_id),
            lines=lines,
            reason=form.text("reason"),
            reference=form.optional("reference"),
        )
    except TOLD as error:
        names = {f"lines[{at}]": f"{_LINE}{cited}" for at, (cited, _) in enumerate(lines or ())}
        refused = form.refused(error, names)
        return await _credit_page(visit, invoice_id, refused, status=error.status)
    said = f"{note['number']} is issued: {note['total']} {note['currency']} are credited."
    return visit.go(f"/console/money/credit-notes/{note['id']}", said=said)


def _cited(form: Form) -> list[tuple[int, object]]:
    names = [name for name in form.values if name.startswith(_LINE) and form.text(name)]
    positions = [(name.removeprefix(_LINE), form.text(name)) for name in names]
    return [(int(at), amount) for at, amount in positions if at.isascii() and at.isdigit()]


def _payment_page(visit: Visit, shown: View, form: Form, *, status: int = 200) -> Answer:
    return visit.show("invoices/pay.html", status=status, invoice=shown, form=form)


def _take_back_page(
    visit: Visit, shown: View, payment_id: str, form: Form, *, status: int = 200
) -> Answer:
    """Raises NotFound for a payment of another invoice."""
    payment = next((each for each in shown["payments"] if each["id"] == payment_id), None)
    if payment is None:
        raise NotFound("there is no such payment")
    return visit.show(
        "invoices/take_back.html", status=status, invoice=shown, payment=payment, form=form
    )


async def _credit_page(visit: Visit, named: str, form: Form, *, status: int = 200) -> Answer:
    found, shown = await load(visit, named)
    return visit.show(
        "invoices/credit.html",
        status=status,
        invoice=shown,
        left=await visit.parts.invoice_desk.left_to_credit(found),
        form=form,
    )


PAGES = (
    show_payment,
    note_payment,
    show_take_back,
    take_back_payment,
    show_credit,
    issue_credit_note,
)
