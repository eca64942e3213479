"""Errors as RFC 9457 problems."""

from typing import Any

import msgspec
import pytest
from litestar import Request
from litestar.exceptions import MethodNotAllowedException, NotFoundException, ValidationException
from litestar.testing import RequestFactory

from gateway.errors import Conflict, StoreUnavailable, Unauthorized, Unprocessable
from gateway.http.problems import MEDIA_TYPE, problem_response

REQUEST: Request[Any, Any, Any] = RequestFactory().get("/admin/v1/tenants")


@pytest.mark.parametrize(
    ("error", "status", "code", "param"),
    [
        (Conflict("tenant acme exists already"), 409, "conflict", None),
        (Unprocessable("tpm: must be less", param="tpm"), 422, "unprocessable", "tpm"),
        (StoreUnavailable("away", code="outcome_unknown"), 503, "outcome_unknown", None),
        (NotFoundException(), 404, "not_found", None),
        (MethodNotAllowedException(), 405, "method_not_allowed", None),
        (
            ValidationException(extra=[{"message": "Expected `int`", "key": "limit"}]),
            422,
            "unprocessable",
            "limit",
        ),
        (ValidationException("wrong"), 422, "unprocessable", None),
        (RuntimeError("inner workings"), 500, "internal_error", None),
    ],
)
def test_every_error_becomes_a_complete_problem(
    error: Exception, status: int, code: str, param: str | None
) -> None:
    """Status, media type, and the members that RFC 9457 names."""
    answer = problem_response(REQUEST, error)
    assert (answer.status_code, answer.media_type) == (status, MEDIA_TYPE)
    problem = msgspec.json.decode(answer.content)
    assert (problem["status"], problem["code"], problem.get("param")) == (status, code, param)
    assert problem["type"] == f"urn:weir:problem:{code}"
    assert problem["title"]
    assert problem["detail"]
    assert "inner" not in problem["detail"]


def test_a_refusal_says_how_to_go_on() -> None:
    """How to authenticate, when to try again."""
    assert problem_response(REQUEST, Unauthorized("no token")).headers["www-authenticate"]
    assert problem_response(REQUEST, StoreUnavailable("away")).headers["retry-after"] == "1"


def test_what_a_request_named_is_shown_in_bounds() -> None:
    """An answer does not grow with the body that was wrong."""
    answer = problem_response(REQUEST, Unprocessable("x" * 100_000, param="y" * 100_000))
    problem = msgspec.json.decode(answer.content)
    assert problem["detail"] == "x" * 500 + "…"
    assert len(answer.content) < 2_000
