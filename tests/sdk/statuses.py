"""Every status of the contract (DESIGN 2.2), as data for both SDKs and for docs/sdks.md."""

from sdk.failures import (
    STREAM,
    Failure,
    asks,
    faulty,
    key_of_another_model,
    key_of_another_network,
    limited,
    no_worker,
    redis_stopped,
    sequence_taken,
    worker_killed,
    wrong_key,
)

_INVALID, _UPSTREAM, _OVERLOADED = "invalid_request_error", "upstream_error", "overloaded_error"
_BAD, _LIMIT, _SERVER = "BadRequestError", "RateLimitError", "InternalServerError"
_RATE = "rate_limit_exceeded"
_TOO_LONG = [{"role": "user", "content": "river " * 140_000}]
_OVER = [{"role": "user", "content": "x" * 9_000_000}]

STATUSES = (
    Failure(
        "a value out of range",
        asks(temperature=9),
        400,
        _INVALID,
        "invalid_value",
        _BAD,
        "temperature",
    ),
    Failure(
        "a prompt longer than the context",
        asks(messages=_TOO_LONG),
        400,
        _INVALID,
        "context_length_exceeded",
        _BAD,
        "messages",
    ),
    Failure(
        "a field that nobody knows",
        asks(extra_body={"frobnicate": 1}),
        400,
        _INVALID,
        "unsupported_parameter",
        _BAD,
        "frobnicate",
    ),
    Failure("a need above the limit itself", limited(tpm=4), 400, _INVALID, "invalid_value", _BAD),
    Failure(
        "a key that nobody has", wrong_key, 401, _INVALID, "invalid_api_key", "AuthenticationError"
    ),
    Failure(
        "a model that the key may not use",
        key_of_another_model,
        403,
        "permission_error",
        "model_not_allowed",
        "PermissionDeniedError",
        "model",
    ),
    Failure(
        "an address that the key may not be used from",
        key_of_another_network,
        403,
        "permission_error",
        "ip_not_allowed",
        "PermissionDeniedError",
    ),
    Failure(
        "a model that does not exist",
        asks(model="nope"),
        404,
        _INVALID,
        "model_not_found",
        "NotFoundError",
        "model",
    ),
    Failure(
        "a body over 8 MiB", asks(messages=_OVER), 413, _INVALID, "request_too_large", "APIError"
    ),
    Failure(
        "the limit of sequences is met", sequence_taken, 429, "sequences", _RATE, _LIMIT, waits=True
    ),
    Failure(
        "the limit of tokens a minute is met",
        limited(1, tpm=25),
        429,
        "tokens",
        _RATE,
        _LIMIT,
        waits=True,
    ),
    Failure(
        "the limit of requests a minute is met",
        limited(1, rpm=1),
        429,
        "requests",
        _RATE,
        _LIMIT,
        waits=True,
    ),
    Failure(
        "no worker of the model", no_worker, 503, _OVERLOADED, "no_worker", _SERVER, waits=True
    ),
    Failure(
        "the engine's queue is full",
        faulty("queue_full"),
        503,
        _OVERLOADED,
        "no_capacity",
        _SERVER,
        waits=True,
    ),
    Failure(
        "the same, of a stream",
        faulty("queue_full", stream=True),
        503,
        _OVERLOADED,
        "no_capacity",
        _SERVER,
        waits=True,
    ),
    Failure(
        "Redis does not answer",
        redis_stopped,
        503,
        _OVERLOADED,
        "admission_unavailable",
        _SERVER,
        waits=True,
    ),
    Failure("the engine fails", faulty("error_500"), 502, _UPSTREAM, "worker_failed", _SERVER),
    Failure(
        "the engine is lost, whole answer",
        faulty("die_midstream", after_tokens=3),
        502,
        _UPSTREAM,
        "worker_failed",
        _SERVER,
    ),
    Failure("the engine is silent", faulty("stall"), 504, _UPSTREAM, "worker_timeout", _SERVER),
)
"""Before the first byte: a status."""

MIDSTREAM = (
    Failure(
        "the engine's connection is lost",
        faulty("die_midstream", after_tokens=3, **STREAM),
        0,
        _UPSTREAM,
        "worker_failed",
        "APIError",
    ),
    Failure("the worker is killed", worker_killed, 0, _UPSTREAM, "worker_failed", "APIError"),
    Failure(
        "the engine says that it failed",
        faulty("error_event", after_tokens=3, **STREAM),
        0,
        _UPSTREAM,
        "worker_failed",
        "APIError",
    ),
    Failure(
        "the engine ends without a finish reason",
        faulty("drop_finish", after_tokens=3, **STREAM),
        0,
        _UPSTREAM,
        "worker_failed",
        "APIError",
    ),
    Failure(
        "the engine falls silent",
        faulty("stall", after_tokens=3, **STREAM),
        0,
        _UPSTREAM,
        "worker_timeout",
        "APIError",
    ),
)
"""After it: the error event. `status` is 0: the SDKs have none."""
