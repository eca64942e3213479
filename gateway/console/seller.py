"""Who sells, as it is printed on what is issued from now on."""

from litestar import get, post

from billing.domain.invoicing.party import Seller
from gateway.console.access import page
from gateway.console.forms import Form
from gateway.console.money_forms import TOLD
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.errors import NotFound

_PATH = "/console/money/invoices/seller"
_TEXTS = ("name", "country", "tax_id", "email", "invoice_prefix", "credit_note_prefix", "time_zone")
_LINES = ("address", "bank")
_DEFAULTS = {"invoice_prefix": "INV", "credit_note_prefix": "CN", "time_zone": "UTC"}


@get("/money/invoices/seller", opt=page(Permission.INVOICES_READ))
async def show_seller(visit: Here) -> Answer:
    """Who sells; empty where nobody has said so."""
    try:
        known = await visit.parts.invoice_desk.seller()
    except NotFound:
        return _page(
            visit, Form.filled(dict.fromkeys((*_TEXTS, *_LINES)) | _DEFAULTS), is_set=False
        )
    values = {name: known.get(name) for name in _TEXTS}
    lines = {name: "\n".join(known.get(name) or ()) for name in _LINES}
    return _page(visit, Form.filled({**_DEFAULTS, **values, **lines}))


@post("/money/invoices/seller", opt=page(Permission.INVOICES_WRITE))
async def set_seller(visit: Here) -> Answer:
    """Say who sells, whole."""
    form = await visit.form()
    form.need("name", "country", "invoice_prefix", "credit_note_prefix", "time_zone")
    if not form.ok:
        return _page(visit, form, status=422)
    seller = Seller(
        name=form.text("name"),
        address=_lines(form, "address"),
        country=form.text("country"),
        tax_id=form.optional("tax_id"),
        email=form.optional("email"),
        bank=_lines(form, "bank"),
        invoice_prefix=form.text("invoice_prefix"),
        credit_note_prefix=form.text("credit_note_prefix"),
        time_zone=form.text("time_zone"),
    )
    try:
        await visit.parts.invoice_desk.set_seller(visit.actor, seller)
    except TOLD as error:
        return _page(visit, form.refused(error), status=error.status)
    return visit.go(_PATH, said="Saved. What is issued from now on is of this seller.")


def _lines(form: Form, name: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in form.text(name).splitlines() if line.strip())


def _page(visit: Visit, form: Form, *, status: int = 200, is_set: bool = True) -> Answer:
    return visit.show("invoices/seller.html", status=status, form=form, is_set=is_set)


PAGES = (show_seller, set_seller)
