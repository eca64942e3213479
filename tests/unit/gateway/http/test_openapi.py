"""The OpenAPI document is valid, complete, and says what the handlers do."""

import ast
import inspect
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from litestar import Litestar, get
from litestar.routes import ASGIRoute, HTTPRoute
from openapi_spec_validator import OpenAPIV31SpecValidator

from gateway.app import Gateway, create_app
from gateway.http.openapi import openapi_document
from gateway.http.openapi_operations import OPERATION_OPTION, Operation
from gateway.settings import Settings
from gateway.wire.fields import PRIVILEGED_FIELDS

Json = dict[str, Any]
SECRETS = {"secret", "token", "password", "password_hash", "digest", "api_key"}
MAY_SHOW = {("NewKeyAnswer", "secret"), ("NewTokenAnswer", "token")}


@pytest.fixture
async def app(tmp_path: Path) -> Litestar:
    """The application as `weir serve` composes it; nothing is connected."""
    settings = Settings(
        database_url="postgresql://nowhere/none", redis_url="redis://nowhere", journal_dir=tmp_path
    )
    gateway = Gateway(settings)
    parts = ("journal", "copied", "watch", "shipper", "places", "ceilings", "looks", "tracing")
    for part in parts:
        setattr(gateway, part, SimpleNamespace(condition=None, pace=None, journal=None))
    return create_app(gateway)


@pytest.fixture
def document(app: Litestar) -> Json:
    """Its document."""
    return openapi_document(app, version="0.1.0")


def operations(document: Json) -> dict[tuple[str, str], Json]:
    """Each operation by method and path."""
    return {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def bodies_by_route(app: Litestar) -> dict[tuple[str, str], tuple[Any, Operation]]:
    """Each Litestar handler's function and what it says of itself."""
    return {
        (method, route.path_format): (handler.fn, handler.opt[OPERATION_OPTION])
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for method, (handler, _) in route.route_handler_map.items()
        if method != "OPTIONS" and handler.resolve_include_in_schema()
    }


def test_it_is_valid(document: Json) -> None:
    """OpenAPI 3.1, with every reference resolved."""
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []
    names = [operation["operationId"] for operation in operations(document).values()]
    assert len(names) == len(set(names))


def test_it_has_every_route_and_no_other(app: Litestar, document: Json) -> None:
    """Also the two that stream, and those that need no key; the console's pages are for people."""
    routes = set()
    for route in app.routes:
        if route.path.startswith("/console"):
            continue
        path = re.sub(r":\w+}", "}", route.path)
        methods = {"POST"} if isinstance(route, ASGIRoute) else set(getattr(route, "methods", ()))
        routes |= {(method, path) for method in methods - {"OPTIONS"}}
    assert set(operations(document)) == routes
    assert {
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/completions"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("POST", "/admin/v1/workers/{worker_id}/drain"),
        ("GET", "/billing/v1/prices"),
        ("POST", "/billing/v1/prices"),
    } <= routes


async def test_a_handler_that_does_not_describe_itself_is_an_error() -> None:
    """So that none is forgotten."""

    @get("/forgotten")
    async def forgotten() -> None: ...

    with pytest.raises(LookupError, match="/forgotten"):
        openapi_document(Litestar([forgotten], openapi_config=None), version="0")


def test_each_documented_body_is_the_one_that_is_read(app: Litestar) -> None:
    """What a handler says of its body is what it hands to `read_body`."""
    for (method, path), (function, operation) in bodies_by_route(app).items():
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        read = [
            ast.unparse(call.args[1])
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "read_body"
        ]
        if read and read != ["dict[str, Any]"]:
            assert read == [operation.body.__name__], (method, path)
        if operation.body is None:
            assert not read, (method, path)
            assert method in ("GET", "DELETE"), (method, path)


def test_every_operation_says_who_may_call_it(document: Json) -> None:
    """A tenant's key below /v1, a user's token below /admin and /billing, nobody in particular
    elsewhere."""
    for (method, path), operation in operations(document).items():
        prefix = path.split("/")[1]
        user: list[Json] = [{"userToken": []}]
        schemes: Json = {"v1": [{"apiKey": []}], "admin": user, "billing": user}
        wanted = schemes.get(prefix)
        assert operation.get("security") == wanted, (method, path)
        assert operation["summary"], (method, path)
        if wanted is not None:
            refusal = operation["responses"]["401"]["$ref"]
            errors = "v1" if prefix == "v1" else "admin"
            assert refusal == f"#/components/responses/{errors}_401", (method, path)
        if prefix == "billing":
            assert "403" in operation["responses"], (method, path)


def test_errors_have_their_media_type_and_headers(document: Json) -> None:
    """OpenAI's error object below /v1, problems elsewhere, and when to try again."""
    responses = document["components"]["responses"]
    for name, response in responses.items():
        (media_type,) = response["content"]
        problem = name.startswith("admin")
        assert media_type == ("application/problem+json" if problem else "application/json")
        assert problem or "x-request-id" in response["headers"]
    assert {"retry-after", "retry-after-ms", "x-ratelimit-limit-tokens"} <= set(
        responses["v1_429"]["headers"]
    )
    assert {"retry-after", "retry-after-ms"} <= set(responses["v1_503"]["headers"])


def test_a_completion_answers_whole_or_as_a_stream(document: Json) -> None:
    """With the headers of the limits."""
    for path in ("/v1/chat/completions", "/v1/completions"):
        answer = operations(document)["POST", path]["responses"]["200"]
        assert set(answer["content"]) == {"application/json", "text/event-stream"}
        assert {"x-request-id", "x-ratelimit-remaining-tokens", "x-weir-queue-ms"} <= set(
            answer["headers"]
        )


def test_no_body_of_a_tenant_has_a_privileged_field(document: Json) -> None:
    """INV-12: nor any field that is not named."""
    for name in ("ChatBody", "CompletionBody"):
        schema = document["components"]["schemas"][name]
        assert schema["additionalProperties"] is False
        assert not PRIVILEGED_FIELDS & set(schema["properties"])


def test_no_answer_shows_a_secret(document: Json) -> None:
    """But for the two that were just made for whoever asks."""
    shown = {
        (name, field)
        for name, schema in document["components"]["schemas"].items()
        if not name.endswith("Body")
        for field in schema.get("properties", {})
        if field in SECRETS
    }
    assert shown == MAY_SHOW
