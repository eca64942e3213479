"""Single requests: lists of those that have ended, and one's whole life, from its arrival to its
line on an invoice. A tenant's people see their own, and of another's what is not there."""

from typing import Any
from urllib.parse import quote

from litestar import get
from litestar.params import FromPath

from billing.domain.cost_lines import CostLine, Rated, cost_lines
from billing.domain.money import show_amount
from billing.postgres.request_life import EndedRequest
from billing.postgres.usage_records import InvalidCursor
from gateway.adapters.request_story import Underway
from gateway.administration.views import View
from gateway.console.access import shared_page
from gateway.console.forms import Form
from gateway.console.lists import ROWS, given, paging
from gateway.console.rendering import html_response
from gateway.console.request_timeline import timeline_of
from gateway.console.request_words import (
    OUTCOMES,
    flag_text,
    outcome_kind,
    outcome_text,
    source_text,
)
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.domain.tenant import RequestClass
from gateway.errors import NotFound, StoreUnavailable, Unprocessable
from gateway.http.request_views import Sight, life_view, page_of_requests
from gateway.http.requests import OUTCOMES as LISTED_OUTCOMES
from gateway.http.requests import read_filter, read_values, request_id_in

PATH = "/console/requests"
_FILTERS = ("tenant_id", "key_id", "model", "class", "outcome", "from", "to")
_PRICES = {
    "input_tokens": ("input",),
    "cached_input_tokens": ("cached_input", "input"),
    "output_tokens": ("output",),
    "reasoning_tokens": ("reasoning", "output"),
    "requests": ("request",),
}
"""Which price each part has, the first that is written."""


@get("/requests", opt=shared_page(Permission.USAGE_READ))
async def list_requests(visit: Here) -> Answer:
    """Requests that have ended, newest first."""
    form = visit.query()
    status, page, away = 200, None, None
    try:
        chosen = read_filter(read_values(_asked(form).items()), held_to=visit.held_to)
        found = await visit.parts.stories.page(chosen, limit=ROWS, cursor=form.optional("cursor"))
        page = page_of_requests(found, _sight(visit))
    except Unprocessable as error:
        status = error.status
        form.refused(error)
    except InvalidCursor:
        status = 422
        form.errors[""] = "The page of the list is none that a page led to."
    except StoreUnavailable as error:
        status, away = error.status, error.message
    asked = given(form, _FILTERS)
    return visit.show(
        "requests/list.html",
        status=status,
        form=form,
        page=page,
        away=away,
        is_filtered=bool(asked),
        **paging(PATH, form, None if page is None else page["next_cursor"], asked),
        **_choices(visit, form),
        **_words(),
    )


@get("/requests/find", opt=shared_page(Permission.USAGE_READ))
async def find_request(visit: Here) -> Answer:
    """To the page of the request whose id was typed."""
    form = visit.query()
    typed = form.text("id")
    if not typed:
        return visit.go(PATH)
    if request_id_in(typed) is None:
        return _unknown(visit, typed, is_id=False)
    return visit.go(f"{PATH}/{quote(typed, safe='')}")


@get("/requests/{request_id:str}", opt=shared_page(Permission.USAGE_READ))
async def show_request(visit: Here, request_id: FromPath[str]) -> Answer:
    """The life of one request, by any id that a client or an engine knew it by."""
    identifier = request_id_in(request_id)
    if identifier is None:
        return _unknown(visit, request_id, is_id=False)
    found = await visit.parts.stories.find(identifier)
    if found is None or visit.held_to not in (None, found.tenant_id):
        return _unknown(visit, request_id, is_id=True)
    return visit.show(
        "requests/life.html", form=Form.filled({"id": None}), **await _life(visit, found)
    )


@get("/requests/{request_id:str}/now", opt=shared_page(Permission.USAGE_READ))
async def show_request_now(visit: Here, request_id: FromPath[str]) -> Answer:
    """The part of a running one's page that reads itself anew. Once it has ended the page is read
    whole, and no more. Raises NotFound."""
    identifier = request_id_in(request_id)
    found = None if identifier is None else await visit.parts.stories.find(identifier)
    if found is None or visit.held_to not in (None, found.tenant_id):
        raise NotFound("there is no such request")
    context = await _life(visit, found)
    if context["life"]["state"] != "running":
        return html_response("", headers={"hx-refresh": "true"})
    return visit.fragment("requests/_life.html", **context)


async def _life(visit: Visit, found: EndedRequest | Underway) -> dict[str, Any]:
    life = life_view(found, _sight(visit))
    return {
        "life": life,
        "now_path": f"{PATH}/{life['id']}/now",
        "steps": timeline_of(life, visit.now_ms),
        "cost_parts": _cost_parts(found, life["money"]),
        "key_name": await _key_name(visit, life["api_key_id"]),
        **_words(),
    }


def _unknown(visit: Visit, typed: str, *, is_id: bool) -> Answer:
    """The same for what is another tenant's and for what does not exist."""
    form = Form.filled({"id": typed[:100]})
    return visit.show("requests/unknown.html", status=404, form=form, is_id=is_id)


def _sight(visit: Visit) -> Sight:
    return Sight(money=visit.may(Permission.INVOICES_READ), operation=visit.held_to is None)


def _asked(form: Form) -> dict[str, str]:
    """The filters as the API reads them: an instant without its zone is UTC."""
    asked = given(form, _FILTERS)
    instants = {name: form.instant(name) for name in ("from", "to")}
    return asked | {name: at.isoformat() for name, at in instants.items() if at is not None}


def _choices(visit: Visit, form: Form) -> dict[str, Any]:
    models = {model.id for model in visit.parts.directory.models()}
    wished = form.optional("model")
    names = sorted(models | ({wished} if wished else set()))
    return {
        "model_options": [("", "all models"), *((name, name) for name in names)],
        "class_options": [
            ("", "both classes"),
            *((each.value, each.value) for each in RequestClass),
        ],
        "outcome_options": [
            ("", "all outcomes"),
            *((each.value, text) for each, text in OUTCOMES.items() if each in LISTED_OUTCOMES),
        ],
    }


def _words() -> dict[str, Any]:
    return {
        "outcome_text": outcome_text,
        "outcome_kind": outcome_kind,
        "source_text": source_text,
        "flag_text": flag_text,
    }


def _cost_parts(found: object, money: View | None) -> list[dict[str, Any]]:
    """How the cost of a request came to be, part by part, as costs are told apart everywhere."""
    if money is None or not isinstance(found, EndedRequest) or found.price is None:
        return []
    record = found.record
    if record.list_cost_pico is None or record.currency is None:
        return []
    lines = cost_lines(
        Rated(
            record.model,
            found.price,
            1,
            record.prompt_tokens,
            record.cached_prompt_tokens,
            record.output_tokens,
            record.reasoning_tokens,
            record.list_cost_pico,
            0,
        )
    )
    return [_part(line, record.currency, money["price"]) for line in lines]


def _part(line: CostLine, currency: str, price: Any) -> dict[str, Any]:
    kind = line.line_item.rpartition(", ")[2]
    prices = [price[name] for name in _PRICES.get(kind, ()) if price[name] is not None]
    per = "request" if kind == "requests" else "million"
    return {
        "kind": kind,
        "quantity": line.quantity,
        "price": prices[0] if prices else None,
        "per": per,
        "amount": None if line.pico is None else show_amount(line.pico, currency),
    }


async def _key_name(visit: Visit, key_id: str) -> str | None:
    """What its key is called; None where that is not known."""
    try:
        return (await visit.parts.administration.get_key(key_id)).name
    except (NotFound, StoreUnavailable):
        return None


PAGES = (list_requests, find_request, show_request, show_request_now)
