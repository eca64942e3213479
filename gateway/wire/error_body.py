"""OpenAI's error object."""

import math

import msgspec

from gateway.errors import WeirError


def error_object(error: WeirError) -> dict[str, object]:
    """`{"error": {...}}` as OpenAI's SDKs read it."""
    return {
        "error": {
            "message": error.message,
            "type": error.type,
            "param": error.param,
            "code": error.code,
        }
    }


def error_json(error: WeirError) -> bytes:
    """The error object as JSON."""
    return msgspec.json.encode(error_object(error))


def retry_headers(error: WeirError) -> list[tuple[bytes, bytes]]:
    """`retry-after` in whole seconds (1 to 60: SDKs ignore more) and `retry-after-ms`, which every
    429 and 503 carries; `x-should-retry: false` where repeating it by itself would not help."""
    headers = [] if error.may_help_again else [(b"x-should-retry", b"false")]
    if error.retry_after_ms is None:
        return headers
    wait_ms = min(max(error.retry_after_ms, 1), 60_000)
    return [
        *headers,
        (b"retry-after", str(math.ceil(wait_ms / 1000)).encode()),
        (b"retry-after-ms", str(wait_ms).encode()),
    ]
