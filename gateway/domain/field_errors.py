"""What msgspec found wrong with a value, as an Unprocessable that names the field."""

import re

import msgspec

from gateway.errors import Unprocessable

AT_PATH = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")
UNKNOWN_FIELD = re.compile(r"unknown field `(?P<name>[^`]*)`")
QUOTED_VALUE = re.compile(r"^(?P<kind>Invalid (?:enum )?value) .*", re.DOTALL)
"""What of msgspec's quotes a value (an enum's, a tag's): it may be a secret in the wrong place."""
MISSING_FIELD = re.compile(r"missing required field `(?P<name>[^`]*)`")


def reason_and_path(error: msgspec.ValidationError) -> tuple[str, str]:
    """What is wrong, without any value of the input, and where: a dotted path, or empty."""
    text = str(error)
    found = AT_PATH.search(text)
    reason = QUOTED_VALUE.sub(r"\g<kind>", text[: found.start()] if found else text)
    return reason, found["path"] if found else ""


def unprocessable_field(error: msgspec.ValidationError, *, prefix: str = "") -> Unprocessable:
    """The 422 for `error`; its `param` is the dotted path of the field, below `prefix`."""
    reason, path = reason_and_path(error)
    named = UNKNOWN_FIELD.search(reason) or MISSING_FIELD.search(reason)
    param = ".".join(part for part in (prefix, path, named["name"] if named else "") if part)
    reason = reason[0].lower() + reason[1:]
    return Unprocessable(f"{param}: {reason}" if param else reason, param=param or None)
