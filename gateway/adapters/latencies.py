"""The slices of all gateways in Redis: a hash for each, `weir:{latencies}:<slice>`, with a field
for each gateway that measured something in it.

A field takes some hundred bytes for each worker and for each model and class that had requests, and
no more than 2 kB; a slice is kept for six minutes. Who reads knows the version of each slice, and
is sent only those that are not as it knows them.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import cast

import msgspec

from gateway.adapters.scripts import Store, called
from gateway.domain.latency import SLICE_MS, SLICES_KEPT, OfModel, OfWorker, Series, Slice, added

KEPT_MS = (SLICES_KEPT + 5) * SLICE_MS
_VERSION = b"version"
_TELL, _TOLD = (
    (files("gateway.adapters") / "lua" / f"latencies_{name}.lua").read_text()
    for name in ("tell", "told")
)
_Packed = tuple[list[str], list[int]]
"""Of a series its parts (the measure and a worker; or the measure, a model and a class), and its
buckets, each with its count."""
_decode_all = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.msgpack.Decoder(_Packed).decode


@dataclass(frozen=True)
class _Known:
    version: bytes
    measured: Slice


class RedisSlices:
    """Implements `gateway.serving.latencies.Slices`, for one gateway. Its field has a name of its
    own in each of its lives: an earlier one's measurements stay."""

    def __init__(self, store: Store) -> None:
        self._own = secrets.token_hex(8)
        self._tell = store.register_script(_TELL)
        self._told = store.register_script(_TOLD)
        self._known: dict[int, _Known] = {}

    async def tell(self, number: int, measured: Slice) -> None:
        """See `Slices`."""
        await called(self._tell, [slice_key(number)], [self._own, packed(measured), KEPT_MS])

    async def told(self, numbers: Sequence[int]) -> Mapping[int, Slice]:
        """See `Slices`."""
        known = {each: found for each, found in self._known.items() if each in numbers}
        versions = [known[each].version if each in known else b"" for each in numbers]
        reply = await called(self._told, [slice_key(each) for each in numbers], versions)
        for place, fields in cast("list[tuple[int, list[bytes]]]", reply):
            known[numbers[place - 1]] = _slice_of(fields)
        self._known = known
        return {each: found.measured for each, found in known.items()}


def slice_key(number: int) -> str:
    """Where a slice is. All of them share a hash slot."""
    return f"weir:{{latencies}}:{number}"


def packed(measured: Slice) -> bytes:
    """One gateway's part of a slice, as it is stored."""
    return msgspec.msgpack.encode(
        [
            (list(series), [number for pair in histogram.items() for number in pair])
            for series, histogram in measured.items()
        ]
    )


def _slice_of(fields: Sequence[bytes]) -> _Known:
    """All parts of a slice that can be read, added up: a later release may write others."""
    version, parts = b"", dict[Series, list[dict[int, int]]]()
    for name, value in zip(fields[::2], fields[1::2], strict=True):
        if name == _VERSION:
            version = value
            continue
        for series, histogram in _readable(value):
            parts.setdefault(series, []).append(histogram)
    return _Known(version, {series: added(each) for series, each in parts.items()})


def _readable(value: bytes) -> Iterator[tuple[Series, dict[int, int]]]:
    with suppress(msgspec.DecodeError):
        for each in _decode_all(value):
            # TypeError: of more or fewer parts. ValueError: a bucket without its count.
            with suppress(msgspec.DecodeError, TypeError, ValueError):
                of, numbers = _decode(each)
                series: Series = OfModel(*of) if len(of) == len(OfModel._fields) else OfWorker(*of)
                yield series, dict(zip(numbers[::2], numbers[1::2], strict=True))
