"""The OpenAPI document, built from the application's own routes: it has each and no other."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, get_args, get_type_hints

import msgspec
from litestar import Litestar, Request, get
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.params import PathParameter, QueryParameter
from litestar.routes import ASGIRoute, HTTPRoute

from gateway.administration.pages import LIMIT_MAX
from gateway.http.openapi_operations import OPERATION_OPTION, Operation, described
from gateway.http.openapi_responses import (
    CLASS_HEADERS,
    SHARED_HEADERS,
    SHARED_RESPONSES,
    USERS_PATHS,
    Json,
    json_content,
    refusals,
    success,
)
from gateway.http.openapi_schema import parameter_schema, schemas_of
from gateway.http.openapi_v1 import ErrorAnswer
from gateway.http.problems import Problem

SECURITY_SCHEMES: Json = {
    "apiKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "A tenant's API key, for everything below /v1.",
    },
    "userToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "A user's token, for everything below /admin/v1 and /billing/v1.",
    },
}


@dataclass(frozen=True)
class _Route:
    path: str
    method: str
    status: int
    function: Any
    dependencies: Mapping[str, Provide]
    operation: Operation


def document_handler() -> HTTPRouteHandler:
    """The handler of `/openapi.json`."""

    @get("/openapi.json", opt=described(dict[str, Any]))
    async def get_document(request: Request[Any, Any, Any]) -> Json:
        """This document."""
        return openapi_document(request.app, version=metadata.version("weir"))

    return get_document


def openapi_document(app: Litestar, *, version: str) -> Json:
    """The document of every route that `app` has, but for pages that are made for people, which
    say `include_in_schema=False`, and OPTIONS, which Litestar answers.

    Raises LookupError for a handler that does not describe itself.
    """
    routes = sorted(_routes_of(app), key=lambda route: (route.path, route.method))
    types: dict[Any, None] = {Problem: None, ErrorAnswer: None}
    for route in routes:
        operation = route.operation
        for kind in (operation.body, operation.answer, operation.documents):
            if kind is not None:
                types[kind] = None
    schemas, components = schemas_of(types)
    paths: Json = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Weir",
            "version": version,
            "description": "A gateway for self-hosted language models. Below /v1 it speaks "
            "OpenAI's API; every other error is an RFC 9457 problem.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": SHARED_RESPONSES,
            "headers": SHARED_HEADERS,
            "securitySchemes": SECURITY_SCHEMES,
        },
    }
    plain: Json = msgspec.json.decode(msgspec.json.encode(document))
    return plain


def _routes_of(app: Litestar) -> Iterator[_Route]:
    for route in app.routes:
        if isinstance(route, ASGIRoute):
            handler = route.route_handler
            operation = _described(handler.opt, route.path)
            yield _Route(route.path, "POST", 200, handler.fn, {}, operation)
        elif isinstance(route, HTTPRoute):
            for method, (each, _) in route.route_handler_map.items():
                if method != "OPTIONS" and each.resolve_include_in_schema():
                    operation = _described(each.opt, route.path_format)
                    yield _Route(
                        route.path_format,
                        method,
                        each.status_code,
                        each.fn,
                        each.resolve_dependencies(),
                        operation,
                    )


def _described(options: dict[str, Any], path: str) -> Operation:
    operation = options.get(OPERATION_OPTION)
    if not isinstance(operation, Operation):
        raise LookupError(f"the handler of {path} does not describe itself: opt=described(...)")
    return operation


def _operation(route: _Route, schemas: dict[Any, Json]) -> Json:
    operation = route.operation
    tag = _tag(route.path)
    parameters = [*_parameters(route.function, route.dependencies)]
    if route.path.startswith("/v1/") and operation.body is not None:
        parameters += CLASS_HEADERS
    answer = schemas.get(operation.answer)
    found: Json = {
        "tags": [tag],
        "operationId": f"{tag}_{operation.name or route.function.__name__}",
        "summary": operation.summary or " ".join((inspect.getdoc(route.function) or "").split()),
        "parameters": parameters,
        "responses": {
            str(route.status): success(
                route.path,
                answer,
                operation.media_type,
                operation.body,
                document=schemas.get(operation.documents),
            ),
            **{
                str(status): {"description": meaning, "content": json_content(answer or {})}
                for status, meaning in operation.statuses.items()
            },
            **refusals(
                route.path,
                route.method,
                has_body=operation.body is not None,
                has_parameters=bool(parameters),
                may_be_absent=operation.may_be_absent,
            ),
        },
    }
    if operation.body is not None:
        found["requestBody"] = {
            "required": operation.body_required,
            "content": json_content(schemas[operation.body]),
        }
    if route.path.startswith(("/v1/", *USERS_PATHS)):
        scheme = "apiKey" if route.path.startswith("/v1/") else "userToken"
        found["security"] = [{scheme: []}]
    return found


def _tag(path: str) -> str:
    parts = path.strip("/").split("/")
    if path.startswith(USERS_PATHS):
        return parts[2] + ("_" + parts[4] if len(parts) > 4 else "")
    return "v1" if parts[0] == "v1" else "process"


def _parameters(function: Any, dependencies: Mapping[str, Provide]) -> Iterator[Json]:
    """Those of the handler, and those of what it is given by others."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, *marks = get_args(hints.get(name)) or (None,)
        where = _where(marks)
        if where is None:
            if name in dependencies:
                yield from _parameters(dependencies[name].dependency, {})
            continue
        schema = parameter_schema(kind)
        if where == "query" and name == "limit":
            schema |= {"minimum": 1, "maximum": LIMIT_MAX}
        if parameter.default not in (inspect.Parameter.empty, None):
            schema["default"] = parameter.default
        named = next((mark.name for mark in marks if getattr(mark, "name", None)), name)
        yield {"name": named, "in": where, "required": where == "path", "schema": schema}


def _where(marks: list[Any]) -> str | None:
    if any(isinstance(mark, PathParameter) for mark in marks):
        return "path"
    if any(isinstance(mark, QueryParameter) for mark in marks):
        return "query"
    return None
