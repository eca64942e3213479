"""Every answer that is an error is counted by where it was given, and has a line with the id that
the client was told."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from litestar import Litestar, Request
from litestar.exceptions import MethodNotAllowedException, NotFoundException
from litestar.testing import RequestFactory
from log_capture import logging_to

from gateway.errors import InvalidApiKey, Overloaded, StoreUnavailable, Unprocessable
from gateway.http.failures import answer_exception
from gateway.telemetry import request_lines
from gateway.telemetry.error_answers import surface_of
from gateway.telemetry.log_context import begin_request, name_caller
from gateway.telemetry.metrics import ERRORS

REQUESTS = RequestFactory(app=Litestar([], logging_config=None))
ID = UUID("019aa000-0000-7000-8000-000000000001")


@pytest.fixture(autouse=True)
def _nothing_written_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_lines, "_bound", request_lines.Bound())


async def answered(path: str, error: Exception) -> Any:
    """The answer of a request of its own."""
    request: Request[Any, Any, Any] = REQUESTS.get(path)

    async def work() -> Any:
        begin_request(ID)
        return answer_exception(request, error)

    return await asyncio.create_task(work())


@pytest.mark.parametrize(
    ("path", "error", "surface", "status", "code"),
    [
        ("/v1/usage", StoreUnavailable("away"), "v1", 503, "store_unavailable"),
        ("/v1/models", InvalidApiKey("wrong"), "v1", 401, "invalid_api_key"),
        ("/v1/limits", RuntimeError("inner"), "v1", 500, "internal_error"),
        ("/v1/none", NotFoundException(), "v1", 404, "not_found"),
        ("//v1/models", MethodNotAllowedException(), "v1", 405, "invalid_value"),
        ("/admin/v1/tenants", StoreUnavailable("away"), "admin", 503, "store_unavailable"),
        ("/admin/v1/tenants", Unprocessable("tpm"), "admin", 422, "unprocessable"),
        ("/admin/v1/tenants", RuntimeError("inner"), "admin", 500, "internal_error"),
        ("/billing/v1/usage", Overloaded("x", code="busy"), "billing", 503, "busy"),
        ("/nowhere", NotFoundException(), "other", 404, "not_found"),
    ],
)
async def test_it_is_counted_and_logged(
    path: str, error: Exception, surface: str, status: int, code: str
) -> None:
    """Once, whatever was raised; by the id that is in the answer."""
    series = ERRORS.labels(code, surface)
    before = series._value.get()
    with logging_to(form="json", requests="all") as log:
        answer = await answered(path, error)
    assert answer.status_code == status
    assert series._value.get() == before + 1
    (line,) = [each for each in log.objects if each["message"] == "answered with an error"]
    assert (line["status"], line["code"]) == (status, code)
    assert line["level"] == ("warning" if status >= 500 else "info")
    assert line["request_id"] == str(ID) == answer.headers["x-request-id"]


async def test_its_line_says_whose_it_is() -> None:
    """As soon as that is known."""

    async def work() -> None:
        begin_request(ID)
        name_caller("acme", "k-1")
        answer_exception(REQUESTS.get("/v1/usage"), StoreUnavailable("away"))

    with logging_to(form="json") as log:
        await asyncio.create_task(work())
    (line,) = log.objects
    assert (line["tenant"], line["key"]) == ("acme", "k-1")


@pytest.mark.parametrize("path", ["/v1", "/v2/admin", "/adminx", "/console/", "//billing/v1", "/"])
def test_where_a_path_is(path: str) -> None:
    """By its first part alone."""
    of = {"/v1": "v1", "/console/": "console", "//billing/v1": "billing"}
    assert surface_of(path) == of.get(path, "other")
