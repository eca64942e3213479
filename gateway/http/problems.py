"""Every error outside `/v1` as an RFC 9457 problem."""

import logging
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import ExceptionHandlersMap

from gateway.errors import IssueBlocked, WeirError
from gateway.http.private_answers import PRIVATE_HEADERS
from gateway.telemetry.error_answers import surface_of, tell_error
from gateway.telemetry.log_context import current

MEDIA_TYPE = "application/problem+json"

DETAIL_CHARACTERS_MAX = 500
"""Names that a request brings are shown in full only up to here."""

logger = logging.getLogger(__name__)


class Blocking(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is in the way: of what kind, which, how many, in words, and whether finance
    may pass over it on record."""

    obstacle: str
    subject: str
    count: int
    what: str
    can_be_overridden: bool


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an error. `code` is stable; `param` names the field that is at fault."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    param: str | None = None
    blockers: tuple[Blocking, ...] = ()
    """Everything that keeps an invoice from being issued; of no other error."""


def problem_response(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The problem that `error` is, counted and logged. What nobody foresaw is a 500 that says
    nothing of itself."""
    surface = surface_of(request.scope["path"])
    if isinstance(error, WeirError):
        return _answer(
            surface,
            error.status,
            error.message,
            code=error.code,
            param=error.param,
            headers=_headers(error),
            blockers=_blockers(error),
        )
    if isinstance(error, ValidationException):
        param, detail = _first_fault(error)
        return _answer(surface, 422, detail, code="unprocessable", param=param)
    if isinstance(error, HTTPException) and error.status_code < 500:
        code = HTTPStatus(error.status_code).name.lower()
        headers = dict(error.headers or {})
        return _answer(surface, error.status_code, error.detail, code=code, headers=headers)
    logger.error("unforeseen error in an administrative request", exc_info=error)
    return _answer(surface, 500, "An internal error; the log has more.", code="internal_error")


PROBLEM_HANDLERS: ExceptionHandlersMap = {Exception: problem_response}
"""For the routers outside `/v1`, and for the application where no route was found."""


def _answer(
    surface: str,
    status: int,
    detail: str,
    *,
    code: str,
    param: str | None = None,
    headers: dict[str, str] | None = None,
    blockers: tuple[Blocking, ...] = (),
) -> Response[bytes]:
    problem = Problem(
        type=f"urn:weir:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=_cut(detail),
        code=code,
        param=None if param is None else _cut(param),
        blockers=blockers,
    )
    tell_error(surface, status, code)
    identifier = current().request_id
    own = {} if identifier is None else {"x-request-id": str(identifier)}
    return Response(
        msgspec.json.encode(problem),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers={**PRIVATE_HEADERS, **own, **(headers or {})},
    )


def _blockers(error: WeirError) -> tuple[Blocking, ...]:
    if not isinstance(error, IssueBlocked):
        return ()
    return msgspec.convert(error.blockers, tuple[Blocking, ...])


def _cut(text: str) -> str:
    cut = text[:DETAIL_CHARACTERS_MAX]
    return cut if len(cut) == len(text) else cut + "…"


def _headers(error: WeirError) -> dict[str, str]:
    if error.status == 401:
        return {"www-authenticate": 'Bearer realm="weir"'}
    if error.status == 503:
        return {"retry-after": "1"}
    return {}


def _first_fault(error: ValidationException) -> tuple[str | None, str]:
    """The parameter that Litestar could not read, and why."""
    faults = error.extra if isinstance(error.extra, list) else []
    if not faults or not isinstance(faults[0], dict):
        return None, error.detail
    param = faults[0].get("key")
    message = faults[0].get("message", error.detail)
    return (param, f"{param}: {message}") if param else (None, str(message))
