"""What a server's error replies are: redis-py's own exceptions, told by their first word."""

from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

_BY_WORD: dict[str, type[RedisError]] = {
    "ASK": AskError,
    "CLUSTERDOWN": ClusterDownError,
    "LOADING": BusyLoadingError,
    "MASTERDOWN": MasterDownError,
    "MOVED": MovedError,
    "NOAUTH": AuthenticationError,
    "NOPERM": NoPermissionError,
    "NOSCRIPT": NoScriptError,
    "OOM": OutOfMemoryError,
    "READONLY": ReadOnlyError,
    "TRYAGAIN": TryAgainError,
    "WRONGPASS": AuthenticationError,
}


def error_reply(text: str) -> RedisError:
    """The exception for an error reply. A script's own errors keep their text."""
    word, _, rest = text.partition(" ")
    known = _BY_WORD.get(word)
    if known is None:
        return ResponseError(text)
    try:
        return known(rest if known in (AskError, MovedError) else text)
    except (ValueError, LookupError):
        return ResponseError(text)
