"""What msgspec found wrong with a request, as the contract's 400: a path, and never a value."""

import msgspec

from gateway.domain.field_errors import UNKNOWN_FIELD, reason_and_path
from gateway.errors import InvalidRequest, UnsupportedParameter
from gateway.wire.media import PART_KINDS
from gateway.wire.tools import FORMAT_KINDS

NAME_MAX = 64


def shown_name(name: str) -> str:
    """A field's name where it can be repeated; a long or unprintable one is no name."""
    return name if len(name) <= NAME_MAX and name.isprintable() else "a field"


def wrong_value(error: msgspec.ValidationError) -> InvalidRequest:
    """The refusal for `error`: a field that is not known, or a value that one may not have."""
    reason, path = reason_and_path(error)
    unknown = UNKNOWN_FIELD.search(reason)
    if "unknown field" in reason:
        name = shown_name(unknown["name"]) if unknown else "a field"
        param = f"{path}.{name}" if path else name
        return UnsupportedParameter(f"{param} is not supported", param=param)
    if "matching regex" in reason:
        reason = "media must be given as data: URLs, audio in base64"
    elif path == "response_format.type":
        reason = f"must be one of {', '.join(FORMAT_KINDS)}"
    elif path.endswith("].type") and ".content[" in path:
        reason = f"must be one of {', '.join(PART_KINDS)}"
    return InvalidRequest(f"{path}: {reason}" if path else reason, param=path or None)
