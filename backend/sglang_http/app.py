"""The HTTP application over an engine."""

import logging
from typing import Annotated, Any

import msgspec
from litestar import Litestar, Request, Response, get, post
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.handlers import ASGIRouteHandler, HTTPRouteHandler, asgi, delete, route
from litestar.params import FromQuery, QueryParameter
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from backend.sglang_http import descriptions
from backend.sglang_http.engine import Engine, Prompt
from backend.sglang_http.faults import Fault
from backend.sglang_http.health import is_healthy
from backend.sglang_http.metrics import Metrics
from backend.sglang_http.planning import plain_messages
from backend.sglang_http.refusals import Refused
from backend.sglang_http.serving import ChatRoute, Endpoint, GenerateRoute, TextRoute
from backend.sglang_http.wire import AbortBody, TokenizeBody, decode

logger = logging.getLogger(__name__)

Asked = Request[object, object, State]
PROMETHEUS = {"content-type": "text/plain; version=0.0.4; charset=utf-8"}
FLUSHED = (
    b"Cache flushed.\nPlease check backend logs for more details. (When there are running or "
    b"waiting requests, the operation will not be performed.)\n"
)


class Untyped(Response[bytes]):
    """An answer that does not say of which type it is, as SGLang sends its texts."""

    def to_asgi_response(self, *arguments: Any, **named: Any) -> ASGIResponse:
        """The answer as it goes out."""
        answer = super().to_asgi_response(*arguments, **named)
        del answer.headers["content-type"]
        return answer


def create_app(engine: Engine) -> Litestar:
    """SGLang's HTTP, as a gateway uses it, and Weir's own ledger, over one engine."""
    metrics = Metrics(engine)
    return Litestar(
        route_handlers=[
            *_completion_routes(engine),
            *_description_routes(engine),
            *_witness_routes(engine, metrics),
            *_control_routes(engine),
        ],
        openapi_config=None,
        before_send=[metrics.count],
        exception_handlers={
            Refused: _refused,
            HTTPException: _http_error,
            Exception: _unexpected,
        },
    )


def _completion_routes(engine: Engine) -> list[ASGIRouteHandler]:
    chat, text = Endpoint(engine, ChatRoute()), Endpoint(engine, TextRoute())
    own = Endpoint(engine, GenerateRoute())

    @asgi("/v1/chat/completions", copy_scope=False)
    async def chat_completions(scope: Scope, receive: Receive, send: Send) -> None:
        await chat(scope, receive, send)

    @asgi("/v1/completions", copy_scope=False)
    async def completions(scope: Scope, receive: Receive, send: Send) -> None:
        await text(scope, receive, send)

    @asgi("/generate", copy_scope=False)
    async def generate(scope: Scope, receive: Receive, send: Send) -> None:
        await own(scope, receive, send)

    return [chat_completions, completions, *([generate] if engine.info.knows_ids else [])]


def _description_routes(engine: Engine) -> list[HTTPRouteHandler]:
    @get("/v1/models")
    async def models() -> Response[bytes]:
        return _json(descriptions.models(engine))

    @get("/v1/loads")
    async def loads(
        form: Annotated[str, QueryParameter(name="format")] = "json",
    ) -> Response[bytes]:
        if form == "prometheus":
            return Response(descriptions.loads_text(engine), headers=PROMETHEUS)
        return _json(descriptions.loads(engine))

    @get(["/server_info", "/get_server_info"])
    async def server_info() -> Response[bytes]:
        return _json(descriptions.server_info(engine))

    @get(["/model_info", "/get_model_info"])
    async def model_info() -> Response[bytes]:
        return _json(descriptions.model_info(engine))

    return [models, loads, server_info, model_info]


def _witness_routes(engine: Engine, metrics: Metrics) -> list[HTTPRouteHandler]:
    @get("/ready")
    async def ready() -> Response[bytes]:
        # Also while it drains, as SGLang's.
        return _empty(200 if engine.ready else 503)

    @get(["/health", "/health_generate"])
    async def health() -> Response[bytes]:
        return _empty(200 if await is_healthy(engine) else 503)

    @get("/metrics")
    async def prometheus() -> Response[bytes]:
        return Response(metrics.render(), headers=PROMETHEUS)

    @get("/weir/ledger")
    async def ledger(since: FromQuery[int] = 0) -> Response[bytes]:
        page = engine.ledger.page(since)
        return _json(msgspec.structs.replace(page, weir_engine=engine.info.name))

    return [ready, health, prometheus, ledger]


def _control_routes(engine: Engine) -> list[HTTPRouteHandler]:
    @post("/abort_request", status_code=200)
    async def abort(request: Asked) -> Response[bytes]:
        body = decode(await request.body(), AbortBody)
        if body.abort_all or body.rid:
            engine.abort(body.rid or "", abort_all=bool(body.abort_all))
        return Untyped(b"")

    @post("/v1/tokenize", status_code=200)
    async def tokenize(request: Asked) -> Response[bytes]:
        body = decode(await request.body(), TokenizeBody)
        prompts = await _encode(engine, body)
        tokens: list[object] = [prompt.tokens for prompt in prompts]
        count: list[object] = [len(prompt.tokens) for prompt in prompts]
        listed = isinstance(body.prompt, list)
        answer = {
            "tokens": tokens if listed else tokens[0],
            "count": count if listed else count[0],
            "max_model_len": engine.info.context_tokens,
        }
        return _json(answer)

    @route("/flush_cache", http_method=["GET", "POST"], status_code=200)
    async def flush_cache() -> Response[bytes]:
        if engine.flush_cache():
            return Untyped(FLUSHED)
        return Untyped(b"Flush cache failed.\n", status_code=400)

    return [abort, tokenize, flush_cache, *_fault_routes(engine)]


def _fault_routes(engine: Engine) -> list[HTTPRouteHandler]:
    plan = engine.faults
    if plan is None:
        return []

    @post("/weir/faults", status_code=200)
    async def arm(request: Asked) -> Response[bytes]:
        plan.add(decode(await request.body(), Fault))
        return _json(plan.armed())

    @get("/weir/faults")
    async def armed() -> Response[bytes]:
        return _json(plan.armed())

    @delete("/weir/faults", status_code=200)
    async def clear() -> Response[bytes]:
        plan.clear()
        return _json(plan.armed())

    return [arm, armed, clear]


async def _encode(engine: Engine, body: TokenizeBody) -> list[Prompt]:
    if not engine.ready:
        raise Refused("The server is not ready.", status=503, kind="503")
    if body.tools and "tools" not in engine.info.honours:
        raise Refused("tools is not supported by this worker.")
    if (body.messages is None) == (body.prompt is None):
        raise Refused("Exactly one of messages and prompt is required.")
    if body.prompt is not None:
        texts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
        return [await engine.encode_text(text) for text in texts]
    if body.messages:
        messages = plain_messages(body.messages)
        continue_final = bool(body.continue_final_message) and messages[-1].role == "assistant"
        return [await engine.encode_chat(messages, continue_final=continue_final)]
    raise Refused("Messages cannot be empty.")


def _empty(status: int) -> Response[bytes]:
    return Untyped(b"", status_code=status)


def _json(value: object) -> Response[bytes]:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _refused(_: Asked, error: Refused) -> Response[bytes]:
    return Response(error.body(), status_code=error.status, media_type="application/json")


def _http_error(_: Asked, error: HTTPException) -> Response[bytes]:
    names = {404: "Not Found", 405: "Method Not Allowed"}
    detail = names.get(error.status_code, "Bad Request")
    body = msgspec.json.encode({"detail": detail})
    allowed = (error.headers or {}).get("allow", "").split(", ")
    methods = ", ".join(sorted({*allowed} & {"DELETE", "GET", "POST"}))
    headers = {"allow": methods} if methods else None
    kind = "application/json"
    return Response(body, status_code=error.status_code, media_type=kind, headers=headers)


def _unexpected(_: Asked, error: Exception) -> Response[bytes]:
    # The error's text could hold a prompt; its type cannot.
    logger.error("a request failed unexpectedly: %s", type(error).__name__)
    return _refused(_, Refused("Internal server error", status=500, kind="InternalServerError"))
