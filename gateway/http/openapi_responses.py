"""Answers of the document: headers, OpenAI's error object below `/v1`, problems elsewhere."""

from collections.abc import Mapping
from typing import Any

from gateway.http.openapi_schema import REF_TEMPLATE
from gateway.http.openapi_v1 import ErrorAnswer
from gateway.http.problems import MEDIA_TYPE, Problem

Json = dict[str, Any]

_V1_MEANINGS = {
    400: "The request is malformed or can never be served.",
    401: "The key is missing, wrong, revoked or expired.",
    403: "The key's scopes do not cover this.",
    404: "There is no such model.",
    413: "The body is over the limit.",
    429: "One of the tenant's own limits; `type` says which (a budget is `insufficient_quota`).",
    500: "A fault of the gateway.",
    502: "The engine failed before the first byte.",
    503: "Overloaded, or what a request needs is unavailable.",
    504: "The engine did not answer in time.",
}
_ADMIN_MEANINGS = {
    400: "The request or its body is malformed.",
    401: "No valid token.",
    403: "The role does not allow it.",
    404: "There is no such thing.",
    409: "It exists already, or changed meanwhile.",
    413: "The body is over the limit.",
    422: "Well-formed, but it cannot be accepted; `param` names the field.",
    500: "A fault of the gateway.",
    503: "A store cannot be reached; nothing was changed unless `code` is outcome_unknown.",
}


def _header(description: str, kind: str = "string") -> Json:
    return {"description": description, "schema": {"type": kind}}


_LIMIT_HEADERS = {
    **{f"x-ratelimit-limit-{of}": f"The tightest limit on {of} a minute." for of in
       ("tokens", "requests")},
    **{f"x-ratelimit-remaining-{of}": f"What remains of it in {of}." for of in
       ("tokens", "requests")},
    "x-ratelimit-limit-sequences": "The tightest limit on sequences that run at once.",
    "x-ratelimit-remaining-sequences": "What remains of it.",
}  # fmt: skip
_RESETS = {
    f"x-ratelimit-reset-{of}": f"Until the {of} are whole again, such as 6m0s."
    for of in ("tokens", "requests")
}
_BUDGET_HEADERS = {
    "x-ratelimit-limit-budget": "The tightest budget of the month, in the tenant's currency.",
    "x-ratelimit-remaining-budget": "What of it is neither spent nor reserved; absent while that "
    "is not known.",
    "x-ratelimit-reset-budget": "Until the month ends in the tenant's time zone.",
}

SHARED_HEADERS: Json = {
    "x-request-id": _header("The id of this request, also of its usage record."),
    **{name: _header(meaning, "integer") for name, meaning in _LIMIT_HEADERS.items()},
    **{name: _header(meaning) for name, meaning in (_RESETS | _BUDGET_HEADERS).items()},
    "x-weir-queue-ms": _header(
        "Milliseconds that the request waited for a worker; of a refusal only where it asked for "
        "one.",
        "integer",
    ),
    "x-weir-worker": _header("The worker, where the operator shows it."),
    "retry-after": {
        "description": "Whole seconds until a retry may succeed.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 60},
    },
    "retry-after-ms": {
        "description": "The same in milliseconds.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 60_000},
    },
    "x-should-retry": _header("false where repeating it soon cannot help; absent elsewhere."),
    "www-authenticate": _header("How to authenticate."),
}
USERS_PATHS = ("/admin/", "/billing/")
"""Where a user's token is needed, and errors are problems."""
_ID = ("x-request-id",)
_LIMITS = (*_ID, *_LIMIT_HEADERS, *_RESETS, *_BUDGET_HEADERS)
_RETRY = ("retry-after", "retry-after-ms", "x-should-retry")

CLASS_HEADERS: list[Json] = [
    {
        "name": "x-weir-class",
        "in": "header",
        "required": False,
        "description": "Asks for a lower class than the key's own.",
        "schema": {"enum": ["batch", "interactive"]},
    },
    {
        "name": "x-weir-data-policy",
        "in": "header",
        "required": False,
        "description": "Keeps this request off hosted providers; it can only tighten.",
        "schema": {"enum": ["self_hosted_only", "hosted_allowed"]},
    },
    {
        "name": "x-weir-max-wait-ms",
        "in": "header",
        "required": False,
        "description": "Milliseconds that it waits for a worker at most; it can only shorten.",
        "schema": {"type": "integer", "minimum": 0},
    },
]


def json_content(schema: Json) -> Json:
    """A content of JSON."""
    return {"application/json": {"schema": schema}}


def success(
    path: str, answer: Json | None, media_type: str, body: Any, *, document: Json | None = None
) -> Json:
    """The answer of an operation that succeeds; `document` is the schema of its JSON file, where
    an ending of the path asks for files."""
    if path.startswith("/v1/"):
        headers = (*_LIMITS, "x-weir-queue-ms", "x-weir-worker") if body is not None else _ID
        found: Json = {"description": "OK", "headers": _header_refs(headers)}
    else:
        found = {"description": "OK"}
    if answer is not None:
        found["content"] = {media_type: {"schema": answer}}
    elif media_type != "application/json":
        found["content"] = {media_type: {"schema": {"type": "string"}}}
    if document is not None:
        found["content"] = {
            media_type: {"schema": {"anyOf": [answer, document]}},
            "text/csv": {"schema": {"type": "string"}},
            "application/pdf": {"schema": {"type": "string", "contentEncoding": "binary"}},
        }
    if body is not None and path.startswith("/v1/"):
        found["content"]["text/event-stream"] = {
            "schema": {
                "type": "string",
                "description": "Where `stream` is true: OpenAI's chunks, one event each, then "
                "`[DONE]`; a failure is one event with the error object, and no `[DONE]`.",
            }
        }
    return found


def refusals(
    path: str, method: str, *, has_body: bool, has_parameters: bool, may_be_absent: bool = False
) -> Json:
    """References to the errors that an operation may answer with."""
    if path.startswith("/v1/"):
        statuses = list(_V1_MEANINGS) if has_body else [401, 403, 500, 503]
        if has_parameters and not has_body:
            statuses = sorted([*statuses, 400, 429])
        return {str(status): _response_ref(f"v1_{status}") for status in statuses}
    if not path.startswith(USERS_PATHS):
        return {}
    statuses = [401, 500, 503]
    if method != "GET":
        statuses += [403, 409]
    elif path.startswith("/billing/"):
        statuses += [403]
    if may_be_absent:
        statuses += [404]
    if has_body:
        statuses += [400, 413, 422]
    if has_parameters:
        statuses += [404, 422] if "{" in path else [422]
    return {str(status): _response_ref(f"admin_{status}") for status in sorted(set(statuses))}


def _response_ref(name: str) -> Json:
    return {"$ref": f"#/components/responses/{name}"}


def _header_refs(names: tuple[str, ...]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _errors(
    prefix: str,
    meanings: Mapping[int, str],
    media_type: str,
    kind: type,
    headers: Mapping[int, Json],
) -> Json:
    content = {media_type: {"schema": {"$ref": REF_TEMPLATE.format(name=kind.__name__)}}}
    return {
        f"{prefix}_{status}": {
            "description": meaning,
            "content": content,
            "headers": headers.get(status, headers[0]),
        }
        for status, meaning in meanings.items()
    }


SHARED_RESPONSES: Json = {
    **_errors(
        "v1",
        _V1_MEANINGS,
        "application/json",
        ErrorAnswer,
        {
            0: _header_refs(_ID),
            429: _header_refs((*_LIMITS, "x-weir-queue-ms", *_RETRY)),
            503: _header_refs((*_ID, "x-weir-queue-ms", *_RETRY)),
        },
    ),
    **_errors(
        "admin",
        _ADMIN_MEANINGS,
        MEDIA_TYPE,
        Problem,
        {
            0: {},
            401: _header_refs(("www-authenticate",)),
            503: _header_refs(("retry-after",)),
        },
    ),
}
"""By name: `v1_<status>` and `admin_<status>`."""
