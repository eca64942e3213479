"""What a refusal or failure says of itself, in OpenAI's shape or SGLang's, and which end it is."""

from dataclasses import dataclass

import msgspec

from backend.loadtest.run import End

ERROR_BYTES_MAX = 64 * 1024
CODE_CHARACTERS_MAX = 64
_UNAVAILABLE = {"overloaded_error", "SERVICE_UNAVAILABLE", "no_capacity", "no_worker"}


@dataclass(frozen=True, slots=True)
class AnswerError:
    """`code` or else `type` of the error object; None where there was none."""

    code: str | None = None
    type: str | None = None


def read_error(body: bytes) -> AnswerError:
    """Of `{"error": {…}}` or, as SGLang's, of the object itself. Never raises."""
    try:
        parsed = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return AnswerError()
    found = parsed.get("error", parsed) if isinstance(parsed, dict) else None
    if not isinstance(found, dict):
        return AnswerError()
    kind = _word(found.get("type"))
    return AnswerError(_word(found.get("code")) or kind, kind)


def end_of_status(status: int) -> End:
    """How a request ended whose answer has this status, which is not 200."""
    if status == 429:
        return "rate_limited"
    if status == 503:
        return "unavailable"
    return "refused" if 400 <= status < 500 else "failed"


def end_of_event(error: AnswerError) -> End:
    """How a request ended whose stream of status 200 carried this error: SGLang tells streams so
    that its queue is full."""
    if error.code == "503" or error.code in _UNAVAILABLE or error.type in _UNAVAILABLE:
        return "unavailable"
    return "rate_limited" if error.code == "429" else "failed"


def _word(value: object) -> str | None:
    """Codes are words or numbers. Anything else could carry a prompt."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)[:CODE_CHARACTERS_MAX] or None
