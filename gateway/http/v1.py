"""OpenAI's endpoints.

The two that stream are plain ASGI handlers: the answer is written as it comes, and the connection
is watched from the moment the body is read.
"""

import secrets
import time
from collections.abc import Mapping
from typing import Any

from litestar import Request, Response, asgi, get
from litestar.handlers import ASGIRouteHandler
from litestar.types import ControllerRouterHandler, Receive, Scope, Send

from gateway.adapters.usage_reports import UsageReports
from gateway.domain.permissions import Permission
from gateway.domain.pools import pools_of
from gateway.domain.request_id import request_id
from gateway.errors import WeirError
from gateway.http.connection import AsgiConnection
from gateway.http.guards import Users
from gateway.http.openapi_operations import described
from gateway.http.openapi_v1 import (
    ChatAnswer,
    CompletionAnswer,
    LimitsAnswer,
    ModelsAnswer,
)
from gateway.http.organization import organization_handlers
from gateway.http.organization_readers import Reader, reader_of
from gateway.http.usage import own_usage_handler
from gateway.serving.answer import answer_error
from gateway.serving.authenticate import Caller, authenticate, usable_models
from gateway.serving.completion import Completions
from gateway.serving.limits_view import limits_view
from gateway.serving.ports import Clock, Directory, Fleet, Ledger, MonthRebuild
from gateway.serving.queue_looks import PoolLooks
from gateway.settings import Settings
from gateway.telemetry.error_answers import tell_error
from gateway.telemetry.log_context import current, name_caller
from gateway.wire.bodies import BODIES, Endpoint
from gateway.wire.error_body import error_json, retry_headers
from gateway.wire.traceparent import HEADER as TRACEPARENT

ANSWERS: dict[Endpoint, type] = {"chat": ChatAnswer, "completions": CompletionAnswer}
SUMMARIES: dict[Endpoint, str] = {
    "chat": "A chat completion, whole or as a stream of events.",
    "completions": "Completions of one prompt or a list of them, whole or as a stream of events.",
}


class MethodNotAllowed(WeirError):
    """405 on `/v1`."""

    status, type, code = 405, "invalid_request_error", "invalid_value"


def is_openais(path: str) -> bool:
    """Whether a path is below `/v1`, as the router reads it: it leaves out doubled slashes."""
    return path.lstrip("/").partition("/")[0] == "v1"


def client_ip(scope: Mapping[str, Any]) -> str | None:
    """The peer's address as the server saw it; forwarded headers are not believed."""
    client = scope.get("client")
    return client[0] if client else None


def one_each(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Headers by name. Of several `authorization` none counts: which is meant cannot be known.
    Several of one of our own are a list (RFC 9110, 5.3), which none of them takes: a later one must
    not undo what an earlier one asked for. Of several `traceparent` there is no telling either."""
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in headers and (name.startswith(b"x-weir-") or name == TRACEPARENT):
            headers[name] += b", " + value
        else:
            headers[name] = value
    if sum(name == b"authorization" for name, _ in scope["headers"]) > 1:
        del headers[b"authorization"]
    return headers


def fresh_id() -> str:
    """An id for an answer that is no admitted request's: that of its lines in the log."""
    own = current().request_id
    return str(own or request_id(time.time_ns() // 1_000_000, secrets.randbits(74)))


def _with_id(response: Response[Any]) -> Response[Any]:
    response.headers.setdefault("x-request-id", fresh_id())
    return response


def completion_handler(
    path: str, endpoint: Endpoint, completions: Completions, clock: Clock, settings: Settings
) -> ASGIRouteHandler:
    """The ASGI handler of one of the streaming endpoints."""

    operation = described(
        ANSWERS[endpoint],
        body=BODIES[endpoint],
        name=f"create_{endpoint}",
        summary=SUMMARIES[endpoint],
    )

    @asgi(path, copy_scope=False, opt=operation)
    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        connection = AsgiConnection(
            scope,
            receive,
            send,
            clock,
            body_bytes_max=settings.body_bytes_max,
            body_read_ms_max=settings.body_read_ms_max,
        )
        if scope.get("method") != "POST":
            refused = MethodNotAllowed(f"{path} takes POST")
            tell_error("v1", refused.status, refused.code)
            await answer_error(
                connection,
                refused,
                [(b"allow", b"POST"), (b"x-request-id", fresh_id().encode())],
            )
            return
        await completions.serve(endpoint, one_each(scope), client_ip(scope), connection)

    return serve


def v1_handlers(
    *,
    completions: Completions,
    directory: Directory,
    fleet: Fleet,
    ledger: Ledger,
    clock: Clock,
    settings: Settings,
    looks: PoolLooks,
    months: MonthRebuild | None = None,
    usage: UsageReports | None = None,
    users: Users | None = None,
) -> list[ControllerRouterHandler]:
    """All handlers below `/v1`; of usage only where there are reports of it, which `users` read
    too."""

    def caller_of(request: Request[Any, Any, Any]) -> Caller:
        caller = authenticate(
            one_each(request.scope),
            client_ip(request.scope),
            directory,
            now_ms=clock.now_ms(),
            directory_stale_ms_max=settings.directory_stale_ms_max,
            stores_unseen_ms_max=settings.stores_unseen_ms_max,
        )
        name_caller(caller.tenant.id, caller.key.id)
        return caller

    async def usage_reader_of(request: Request[Any, Any, Any], permission: Permission) -> Reader:
        await directory.waken()
        headers = one_each(request.scope)
        return await reader_of(headers, lambda: caller_of(request).tenant.id, users, permission)

    @get("/v1/models", after_request=_with_id, opt=described(ModelsAnswer))
    async def list_models(request: Request[Any, Any, Any]) -> dict[str, object]:
        """The models that the key may use. Those with a simulated worker say so in `owned_by`."""
        await directory.waken()
        models = usable_models(caller_of(request), directory)
        return {"object": "list", "data": [_model_view(model.id, fleet) for model in models]}

    @get("/v1/limits", after_request=_with_id, opt=described(LimitsAnswer))
    async def get_limits(request: Request[Any, Any, Any]) -> dict[str, object]:
        """Limits and use now: of the tenant, the key, and each model that either narrows; and how
        the tenant stands in the queue of each model that the key may use. `null` is no limit; of
        the month's money and of queues what is not known at the moment."""
        await directory.waken()
        caller = caller_of(request)
        models = (model.id for model in usable_models(caller, directory))
        uses = await looks.look_at(pools_of(models, directory.workers()))
        return await limits_view(caller, ledger, now_ms=clock.now_ms(), uses=uses, months=months)

    handlers: list[ControllerRouterHandler] = [
        completion_handler("/v1/chat/completions", "chat", completions, clock, settings),
        completion_handler("/v1/completions", "completions", completions, clock, settings),
        list_models,
        get_limits,
    ]
    if usage is not None:
        handlers.append(own_usage_handler(caller_of, usage, _with_id))
        handlers += organization_handlers(usage_reader_of, usage, _with_id)
    return handlers


def _model_view(model_id: str, fleet: Fleet) -> dict[str, object]:
    # One simulated worker among others makes simulated figures.
    simulated = any(view.simulated for view in fleet.views(model_id))
    owner = "weir-simulated" if simulated else "weir"
    return {"id": model_id, "object": "model", "created": 0, "owned_by": owner}


def openai_error(error: WeirError) -> Response[bytes]:
    """A WeirError as a Litestar response in OpenAI's shape."""
    headers = {name.decode(): value.decode() for name, value in retry_headers(error)}
    headers["x-request-id"] = fresh_id()
    return Response(
        error_json(error),
        status_code=error.status,
        media_type="application/json",
        headers=headers,
    )
