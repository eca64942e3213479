"""The TENANT records of a pool (`pool_queue_scripts`), as the domain has them."""

from collections.abc import Sequence
from struct import Struct

from gateway.domain.queue.standing import Share
from gateway.domain.queue.tickets import Band

NOBODY = b"\xff"
"""Keeps the store's hash from ever being empty."""
_OF_A_BAND = 5
_RECORD = Struct(f"<{1 + len(Band) * _OF_A_BAND}d")
_OWN = Struct(f"<{len(Band)}d")
"""Behind it, of a newcomer in a band: its own counter there, -1 in another."""
_NO_NEWCOMER = (-1,) * len(Band)


def shares(tenants: Sequence[bytes], levels: Sequence[int]) -> dict[str, dict[Band, Share]]:
    """Names and records in turn, as `HGETALL` replies, and where the newcomers of each band stand,
    -1 where there are none. Who is only parked has no share."""
    found: dict[str, dict[Band, Share]] = {}
    for name, record in zip(tenants[::2], tenants[1::2], strict=True):
        if name != NOBODY:
            found[name.decode()] = _bands(record, levels)
    return {name: bands for name, bands in found.items() if bands}


def _bands(record: bytes, levels: Sequence[int]) -> dict[Band, Share]:
    numbers = [int(number) for number in _RECORD.unpack_from(record)]
    behind = _OWN.unpack_from(record, _RECORD.size) if len(record) > _RECORD.size else _NO_NEWCOMER
    bands = {}
    for band in Band:
        first = 1 + band * _OF_A_BAND
        requests, tokens, weight, running, counter = numbers[first : first + _OF_A_BAND]
        if min(behind[band], levels[band]) >= 0:
            counter = min(counter, levels[band])
        if requests or running:
            bands[band] = Share(requests, tokens, weight if requests else 1, running, counter)
    return bands
