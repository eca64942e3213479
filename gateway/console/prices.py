"""The price book: what holds, what begins when, a new price, and the end of a line of prices."""

from typing import Any

from litestar import get, post

from billing.domain.price_book import Price
from billing.postgres.price_line_list import LineFilter
from gateway.administration.price_wishes import CLASSES, SELF, PriceTexts, read_price
from gateway.console import plans, price_import
from gateway.console.access import page
from gateway.console.forms import Form
from gateway.console.lists import ROWS, address, given, paging
from gateway.console.money_forms import CURRENCIES, TOLD
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.hosted import PROVIDER_PREFIX
from gateway.domain.instants import shown
from gateway.domain.permissions import Permission
from gateway.errors import Unprocessable

_PATH = "/console/money/prices"
_FILTERS = ("whose", "model", "currency", "tenant_id", "plan")
_LINE = ("model", "provider", "currency", "tenant_id", "plan", "class")
_AMOUNTS = ("input", "cached_input", "output", "reasoning", "request")
_FIELDS = (*_LINE, *_AMOUNTS, "effective_from")


@get("/money/prices", opt=page(Permission.MONEY_READ))
async def list_prices(visit: Here) -> Answer:
    """The book by line: what holds now and what begins when."""
    query = visit.query()
    filters = given(query, _FILTERS)
    lines: list[dict[str, Any]] = []
    cursor = None
    status = 200
    try:
        found = await visit.parts.administration.price_lines(
            ROWS, query.optional("cursor"), wanted=LineFilter(**filters)
        )
        lines, cursor = found.items, found.next_cursor
    except Unprocessable as error:
        query.refused(error)
        status = error.status
    for line in lines:
        line["change"] = _change_address(line)
        line["withdraw"] = _withdraw_address(line)
    return visit.show(
        "prices/list.html",
        status=status,
        form=query,
        filtered=bool(filters),
        lines=lines,
        models=_models(visit, any_first=True),
        currencies=[("", "any"), *CURRENCIES],
        **paging(_PATH, query, cursor, filters),
    )


@get("/money/prices/new", opt=page(Permission.PRICES_WRITE))
async def show_new_price(visit: Here) -> Answer:
    """The form for a price, filled in from the one that it follows."""
    query = visit.query()
    defaults: dict[str, object] = {"provider": SELF, "currency": "USD"}
    filled = dict.fromkeys(_FIELDS) | defaults | given(query, _FIELDS)
    return _form_page(visit, Form.filled(filled))


@post("/money/prices", opt=page(Permission.PRICES_WRITE))
async def set_price(visit: Here) -> Answer:
    """Add the price."""
    form = await visit.form()
    form.need("model", "input", "output")
    begins_ms = form.instant_ms("effective_from")
    if not form.ok:
        return _form_page(visit, form, status=422)
    try:
        price = await visit.parts.administration.set_price(
            visit.actor, read_price(_texts(form)), effective_from_ms=begins_ms
        )
    except TOLD as error:
        return _form_page(visit, form.refused(error), status=error.status)
    return visit.go(_PATH, said=f"{_said(price)} holds from {shown(price.effective_from_ms)} on.")


@get("/money/prices/withdraw", opt=page(Permission.PRICES_WRITE))
async def show_withdrawal(visit: Here) -> Answer:
    """What the end of a line of prices means, asked once more."""
    query = visit.query()
    line = {name: query.text(name) for name in _LINE}
    return visit.show("prices/withdraw.html", form=Form.filled({**line, "effective_from": None}))


@post("/money/prices/withdraw", opt=page(Permission.PRICES_WRITE))
async def withdraw_price(visit: Here) -> Answer:
    """End the line."""
    form = await visit.form()
    begins_ms = form.instant_ms("effective_from")
    if not form.ok:
        return visit.show("prices/withdraw.html", status=422, form=form)
    try:
        price = await visit.parts.administration.set_price(
            visit.actor,
            read_price(_texts(form, withdrawn=True)),
            effective_from_ms=begins_ms,
        )
    except TOLD as error:
        return visit.show("prices/withdraw.html", status=error.status, form=form.refused(error))
    return visit.go(_PATH, said=f"{_said(price)} ends at {shown(price.effective_from_ms)}.")


def _texts(form: Form, *, withdrawn: bool = False) -> PriceTexts:
    amounts = {} if withdrawn else {name: form.optional(name) for name in _AMOUNTS}
    return PriceTexts(
        model=form.text("model"),
        provider=form.optional("provider") or SELF,
        currency=form.text("currency"),
        tenant_id=form.optional("tenant_id"),
        plan=form.optional("plan"),
        request_class=form.optional("class"),
        withdrawn=withdrawn,
        **amounts,
    )


def _form_page(visit: Visit, form: Form, *, status: int = 200) -> Answer:
    hosted = [PROVIDER_PREFIX + each.name for each in visit.parts.directory.hosted_providers()]
    return visit.show(
        "prices/new.html",
        status=status,
        form=form,
        models=_models(visit),
        providers=[(SELF, "the pool itself"), *((name, name) for name in hosted)],
        currencies=CURRENCIES,
        classes=[("", "both classes"), *((name, name) for name in CLASSES)],
    )


def _models(visit: Visit, *, any_first: bool = False) -> list[tuple[str, str]]:
    names = [(model.id, model.id) for model in visit.parts.directory.models()]
    return [("", "any"), *names] if any_first else names


def _said(price: Price) -> str:
    whose = f"price of the plan {price.plan}" if price.plan else "list price"
    if price.tenant_id is not None:
        whose = f"price of the tenant {price.tenant_id}"
    of_class = f", {price.request_class}," if price.request_class else ""
    return f"The {whose} for {price.model}{of_class} in {price.currency}"


def _line_values(line: dict[str, Any]) -> dict[str, str | None]:
    values = {name: line[name] for name in _LINE if name != "class"}
    return {**values, "class": line["request_class"]}


def _change_address(line: dict[str, Any]) -> str:
    """The form with the amounts of the price that holds."""
    held = line["now"] or (line["later"][0] if line["later"] else {})
    amounts = {name: held.get(name) for name in _AMOUNTS}
    return address(f"{_PATH}/new", {**_line_values(line), **amounts})


def _withdraw_address(line: dict[str, Any]) -> str | None:
    """None where there is nothing to end, or nothing behind it."""
    held = line["now"]
    has_end = line["tenant_id"] or line["plan"] or line["request_class"]
    if held is None or held["withdrawn"] or not has_end:
        return None
    return address(f"{_PATH}/withdraw", _line_values(line))


PAGES = (
    list_prices,
    show_new_price,
    set_price,
    show_withdrawal,
    withdraw_price,
    *plans.PAGES,
    *price_import.PAGES,
)
