"""Token ids as bytes, TOKEN_BYTES each: how far two texts agree, found at memcmp speed."""

from backend.simulated.request import TOKEN_BYTES


def count(ids: bytes) -> int:
    """How many tokens these are."""
    return len(ids) // TOKEN_BYTES


def shared_tokens(stored: bytes, ids: bytes, at: int, end: int) -> int:
    """How many leading tokens of `stored` stand in `ids` from byte `at`, looking no further than
    byte `end` of `ids`; all of both must be whole tokens."""
    length = min(len(stored), end - at)
    if length == len(stored) and ids.startswith(stored, at):
        return length // TOKEN_BYTES
    low, window = 0, TOKEN_BYTES * 16
    while low < length:
        high = min(low + window, length)
        if stored[low:high] != ids[at + low : at + high]:
            return _first_difference(stored, ids, at, low, high) // TOKEN_BYTES
        low = high
        window *= 2
    return length // TOKEN_BYTES


def _first_difference(stored: bytes, ids: bytes, at: int, low: int, high: int) -> int:
    """The byte at which the first differing token of the window begins; the window differs."""
    while high - low > TOKEN_BYTES:
        middle = low + (high - low) // TOKEN_BYTES // 2 * TOKEN_BYTES
        if stored[low:middle] == ids[at + low : at + middle]:
            low = middle
        else:
            high = middle
    return low
