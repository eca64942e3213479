"""Bodies that are JSON and yet make an engine's parser fail: its 500 would look like a worker's
fault. Python's own parser, which SGLang uses, gives up on long whole numbers and deep nesting."""

import json

import msgspec

from gateway.errors import InvalidRequest

NESTING_MAX = 100
DIGITS_MAX = 4_300
"""Python's limit for a whole number in decimal digits."""
_DIGITS = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_TOO_LONG = b"0" * (DIGITS_MAX + 1)


def refuse_unreadable(body: bytes) -> None:
    """Raises InvalidRequest for valid JSON that other parsers fail on. Costs next to nothing for
    a body that has neither many brackets nor a long run of digits, in texts too."""
    if _TOO_LONG in body.translate(_DIGITS):
        try:
            json.loads(body)
        except (ValueError, RecursionError):
            raise InvalidRequest("a number in the body has too many digits") from None
    if body.count(b"[") + body.count(b"{") > NESTING_MAX and _nesting(body) > NESTING_MAX:
        raise InvalidRequest(f"the body is nested deeper than {NESTING_MAX} levels")


def _nesting(body: bytes) -> int:
    try:
        level = [msgspec.json.decode(body)]
    except (msgspec.DecodeError, RecursionError):
        raise InvalidRequest("the body is not valid JSON") from None
    depth = 0
    while level and depth <= NESTING_MAX:
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner += value.values()
            elif isinstance(value, list):
                inner += value
        level = inner
        depth += bool(inner)
    return depth
