"""`/admin/v1/requests`: single requests, one by its id and lists of those that have ended. Nothing
of a prompt or an answer is in them: none is kept."""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any
from uuid import UUID

from litestar import Request, get
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.types import ControllerRouterHandler

from billing.domain.usage_record import Outcome
from billing.postgres.request_list import RequestFilter
from billing.postgres.usage_records import InvalidCursor
from gateway.adapters.request_story import RequestStories
from gateway.administration.pages import LIMIT_DEFAULT, check_page_limit
from gateway.administration.views import View
from gateway.domain.permissions import Permission
from gateway.domain.tenant import RequestClass
from gateway.errors import NotFound, Unprocessable
from gateway.http.access import Own, needs
from gateway.http.guards import may, nothing_there, tenant_of
from gateway.http.openapi_operations import described
from gateway.http.openapi_requests import RequestAnswer, RequestPageAnswer
from gateway.http.request_views import Sight, life_view, page_of_requests
from gateway.http.usage_query import read_instant

PREFIXES = ("chatcmpl-", "cmpl-")
"""What an answer's id has before the request's."""
_UPSTREAM_CHARACTERS = 36
_PARAMETERS = (
    "tenant_id", "key_id", "model", "class", "outcome", "from", "to", "limit", "cursor",
)  # fmt: skip
OUTCOMES = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.TAKEN_BACK)
CLASSES = tuple(each.value for each in RequestClass)
_CHARACTERS_MAX = 256


def request_handlers(stories: RequestStories) -> list[ControllerRouterHandler]:
    """Both handlers; mounted under `/admin/v1`, whose guard they get."""

    @get(
        "/requests",
        opt=described(RequestPageAnswer) | needs(Permission.USAGE_READ, own=Own.LIST),
        tags=["requests"],
    )
    async def list_requests(
        request: Request[Any, Any, Any],
        *,
        tenant_id: FromQuery[str | None] = None,
        key_id: FromQuery[str | None] = None,
        model: FromQuery[str | None] = None,
        request_class: Annotated[str | None, QueryParameter(name="class")] = None,
        outcome: FromQuery[str | None] = None,
        since: Annotated[str | None, QueryParameter(name="from")] = None,
        until: Annotated[str | None, QueryParameter(name="to")] = None,
        limit: FromQuery[int] = LIMIT_DEFAULT,
        cursor: FromQuery[str | None] = None,
    ) -> View:
        """Requests that have ended, newest first: of a tenant, a key, a model, a class, an outcome,
        that arrived at or after `from` and before `to`. A page looks at so many and may end before
        it is full; `next_cursor` goes on."""
        values = read_values(request.query_params.multi_items())
        chosen = read_filter(values, held_to=tenant_of(request))
        try:
            page = await stories.page(chosen, limit=check_page_limit(limit), cursor=cursor)
        except InvalidCursor as error:
            raise Unprocessable(
                "cursor: must be one that an earlier page gave", param="cursor"
            ) from error
        return page_of_requests(page, _sight(request))

    @get(
        "/requests/{request_id:str}",
        opt=described(RequestAnswer) | needs(Permission.USAGE_READ, own=Own.LIST),
        tags=["requests"],
    )
    async def get_request(request: Request[Any, Any, Any], request_id: FromPath[str]) -> View:
        """The life of one request, by the id that its answer had, with or without `chatcmpl-`, or
        by the one that an engine knew one of its streams by."""
        held_to = tenant_of(request)
        identifier = request_id_in(request_id)
        found = None if identifier is None else await stories.find(identifier)
        if found is not None and held_to in (None, found.tenant_id):
            return life_view(found, _sight(request))
        if held_to is not None:
            raise nothing_there()
        raise NotFound(f"there is no request {request_id[:64]}")

    return [list_requests, get_request]


def _sight(request: Request[Any, Any, Any]) -> Sight:
    return Sight(money=may(request, Permission.INVOICES_READ), operation=tenant_of(request) is None)


def request_id_in(text: str) -> UUID | None:
    """The request's id in what an answer or an engine calls it; None where there is none."""
    for prefix in PREFIXES:
        text = text.removeprefix(prefix)
    if len(text) == _UPSTREAM_CHARACTERS and "-" not in text:
        text = text[:32]
    try:
        return UUID(text)
    except ValueError:
        return None


def read_values(given: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The parameters of an address. Raises Unprocessable naming one that is not known, or is given
    twice: it would be an answer to another question."""
    values: dict[str, str] = {}
    for name, value in given:
        if name not in _PARAMETERS:
            known = ", ".join(_PARAMETERS)
            raise Unprocessable(f"{name[:40]!r} is no parameter here: {known}", param=name)
        if name in values:
            raise Unprocessable(f"{name} is given twice", param=name)
        if len(value) > _CHARACTERS_MAX or "\x00" in value:
            raise Unprocessable(f"{name} is too long, or no text", param=name)
        values[name] = value
    return values


def read_filter(values: Mapping[str, str], *, held_to: str | None) -> RequestFilter:
    """What is asked for; `held_to` is the only tenant that whoever asks may see, None where they
    see all. Raises Unprocessable, and NotFound for another's tenant."""
    tenant_id = values.get("tenant_id")
    if held_to is not None and tenant_id not in (None, held_to):
        raise nothing_there()
    since = read_instant(values, "from", Unprocessable)
    until = read_instant(values, "to", Unprocessable)
    if since is not None and until is not None and since >= until:
        raise Unprocessable("from must be before to", param="from")
    return RequestFilter(
        tenant_id=held_to or tenant_id,
        api_key_id=values.get("key_id"),
        model=values.get("model"),
        request_class=_one_of(values, "class", CLASSES),
        outcome=_one_of(values, "outcome", OUTCOMES),
        since=since,
        until=until,
    )


def _one_of(values: Mapping[str, str], name: str, known: Collection[str]) -> str | None:
    value = values.get(name)
    if value is not None and value not in known:
        raise Unprocessable(f"{name} must be one of {', '.join(known)}", param=name)
    return value
