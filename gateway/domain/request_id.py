"""Request ids: UUIDv7 (RFC 9562, section 5.7), whose time is the request's `admitted_at`."""

from uuid import UUID

_RANDOM_A_BITS = 12
_RANDOM_B_BITS = 62


def request_id(now_ms: int, random_bits: int) -> UUID:
    """An id for a request that arrived at `now_ms` (Unix ms). `random_bits` gives 74 of them."""
    random_a = random_bits & ((1 << _RANDOM_A_BITS) - 1)
    random_b = (random_bits >> _RANDOM_A_BITS) & ((1 << _RANDOM_B_BITS) - 1)
    return UUID(int=(now_ms << 80) | (0x7 << 76) | (random_a << 64) | (0b10 << 62) | random_b)


def arrival_ms(identifier: UUID) -> int:
    """The Unix time in ms that an id carries."""
    return identifier.int >> 80


def upstream_id(identifier: UUID, choice: int, attempt: int) -> str:
    """What an engine knows one stream by: 36 characters, so that no id is another's prefix.

    SGLang aborts by prefix: an id of variable length would take others down with it.
    """
    if not (0 <= choice <= 99 and 0 <= attempt <= 99):
        raise ValueError("choice and attempt have two digits")
    return f"{identifier.hex}{choice:02d}{attempt:02d}"
