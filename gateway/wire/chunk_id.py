"""The id that a provider gave an answer, for finding it again in the provider's own bill."""

import msgspec

ID_CHARACTERS_MAX = 128


class _Chunk(msgspec.Struct):
    id: str | None = None


def chunk_id(data: bytes) -> str | None:
    """The `id` of a chunk that `read_event` understood; None where it has none worth keeping."""
    try:
        found = msgspec.json.decode(data, type=_Chunk).id
    except (msgspec.DecodeError, RecursionError):
        return None
    return kept_id(found)


def kept_id(found: str | None) -> str | None:
    """An id as it is stored: printable and of bounded length, else None."""
    if not found or len(found) > ID_CHARACTERS_MAX or not found.isprintable():
        return None
    return found
