"""Errors of the console in its own look: what happened, and what there is to do about it."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException, ValidationException

from gateway.console.guard import login_path
from gateway.console.rendering import PAGE_HEADERS, html_response, redirect_response
from gateway.console.visit import Answer, Visit
from gateway.errors import Forbidden, Unauthorized, WeirError
from gateway.http.session_cookie import SESSION_COOKIE
from gateway.telemetry.error_answers import tell_error

ErrorHandler = Callable[[Request[Any, Any, Any], Exception], Response[Any]]
DETAIL_CHARACTERS_MAX = 500

_TITLES = {
    403: "You may not see this",
    404: "There is no such page",
    405: "This page takes no such form",
    409: "This cannot be done now",
    413: "That was too large",
    422: "This was not understood",
    503: "A store cannot be reached",
}
_ADVICE = {
    403: "Ask an administrator for a role that may. Nothing was changed.",
    404: "What it was about may have been removed, or belongs to somebody else.",
    409: "Somebody else may have changed it meanwhile. Open the page again to see how it is now.",
    422: "Nothing was changed. Go back and correct it.",
    500: "Nothing of this is your fault. The gateway's log has more.",
    503: "Nothing was changed by this. Requests of tenants go on as far as they can; try again in "
    "some seconds.",
}
_NOT_OUR_FORM = frozenset({"csrf", "cross_site"})
_FORM_ADVICE = (
    "This form is too old or comes from another page: open the page again. Nothing was changed."
)
_log = logging.getLogger(__name__)


def answer_errors(
    visit_of: Callable[[Request[Any, Any, Any]], Visit], otherwise: ErrorHandler
) -> ErrorHandler:
    """A handler for the whole application: errors below `/console` are pages, and `otherwise`
    answers all others."""

    def answer(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
        path = str(request.scope["path"])
        if path != "/console" and not path.startswith("/console/"):
            return otherwise(request, error)
        if isinstance(error, Unauthorized):
            return _to_login(request)
        return _error_page(visit_of(request), error)

    return answer


def _to_login(request: Request[Any, Any, Any]) -> Answer:
    is_part = "hx-request" in request.headers
    to = login_path(request, ended=is_part or bool(request.cookies.get(SESSION_COOKIE)))
    if is_part:
        return html_response("", status=401, headers={"hx-redirect": to})
    return redirect_response(to)


def _error_page(visit: Visit, error: Exception) -> Answer:
    status, detail = _told(error)
    own = error.code if isinstance(error, WeirError) else None
    other = "internal_error" if status >= 500 else HTTPStatus(status).name.lower()
    tell_error("console", status, own or other)
    title, advice = _TITLES.get(status, "Something went wrong"), _ADVICE.get(status, "")
    if isinstance(error, Forbidden) and error.code in _NOT_OUR_FORM:
        title, detail, advice = "This form was not taken", "", _FORM_ADVICE
    if "hx-request" in visit.request.headers:
        return _part_refused(status, detail)
    return visit.show(
        "error_alone.html" if visit.caller is None else "error.html",
        status=status,
        title=title,
        status_line=f"{status} {HTTPStatus(status).phrase}",
        detail=detail[:DETAIL_CHARACTERS_MAX],
        advice=advice,
    )


def _part_refused(status: int, detail: str) -> Answer:
    """Of a part that reads itself anew: it stays as it is, and the page says the cause that a 503
    names beside it."""
    if status != HTTPStatus.SERVICE_UNAVAILABLE:
        return html_response("", status=status)
    cause = detail.partition(";")[0][:DETAIL_CHARACTERS_MAX]
    return Response(cause, status_code=status, media_type=MediaType.TEXT, headers=PAGE_HEADERS)


def _told(error: Exception) -> tuple[int, str]:
    """Status and sentence of an error. What nobody foresaw says nothing of itself."""
    if isinstance(error, WeirError):
        return error.status, error.message
    if isinstance(error, ValidationException):
        return 404, "The address is not one of a page."
    if isinstance(error, HTTPException) and error.status_code < 500:
        return error.status_code, ""
    _log.error("unforeseen error on a page of the console", exc_info=error)
    return 500, ""
