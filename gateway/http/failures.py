"""How what a handler raised is answered, whatever it was."""

import logging
from typing import Any

from litestar import Request, Response

from gateway.errors import ModelNotFound, WeirError
from gateway.http.problems import problem_response
from gateway.http.v1 import MethodNotAllowed, is_openais, openai_error
from gateway.telemetry.error_answers import tell_error
from gateway.telemetry.logs import log_failure

_log = logging.getLogger(__name__)


def answer_exception(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """OpenAI's error object below `/v1`, a problem elsewhere. Counted and logged."""
    if not is_openais(request.scope["path"]):
        return problem_response(request, error)
    told = _openais(error)
    tell_error("v1", told.status, told.code)
    return openai_error(told)


def _openais(error: Exception) -> WeirError:
    if isinstance(error, WeirError):
        return error
    status = getattr(error, "status_code", 500)
    if status == 404:
        return ModelNotFound("there is no such endpoint", code="not_found")
    if status == 405:
        return MethodNotAllowed("this endpoint does not take that method")
    log_failure(_log, error, "unforeseen on /v1")
    return WeirError("the gateway failed on this request")
