"""What all gateways use of hosted providers, in Redis: one hash, `weir:{hosted}:use`, with a field
for each gateway that uses any, which says when it was told."""

import secrets
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from gateway.adapters.scripts import Store, called
from gateway.serving.hosted_use import Use

KEY = "weir:{hosted}:use"
KEPT_MS = 60_000
_TELL = """
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""
_FORGET = "return redis.call('HDEL', KEYS[1], unpack(ARGV))"
_READ = "return redis.call('HGETALL', KEYS[1])"


class _Told(msgspec.Struct, array_like=True):
    at_ms: int
    uses: dict[str, tuple[int, int]]


_decode = msgspec.msgpack.Decoder(_Told).decode


class RedisHostedUses:
    """Implements `gateway.serving.hosted_use.Uses`, for one gateway."""

    def __init__(self, store: Store) -> None:
        self._own = secrets.token_hex(8)
        self._tell = store.register_script(_TELL)
        self._forget = store.register_script(_FORGET)
        self._read = store.register_script(_READ)

    async def tell(self, uses: Mapping[str, Use], at_ms: int) -> None:
        """See `Uses`."""
        if not uses:
            await called(self._forget, [KEY], [self._own])
            return
        told = _Told(at_ms, {provider: (*use,) for provider, use in uses.items()})
        arguments = (self._own, msgspec.msgpack.encode(told), KEPT_MS)
        await called(self._tell, [KEY], arguments)

    async def told(self, since_ms: int) -> Sequence[Mapping[str, Use]]:
        """See `Uses`. Forgets those who told nothing since then."""
        reply = cast("list[bytes]", await called(self._read, [KEY]))
        told = {name: _decode(value) for name, value in zip(reply[::2], reply[1::2], strict=True)}
        gone = [name for name, each in told.items() if each.at_ms <= since_ms - KEPT_MS]
        if gone:
            await called(self._forget, [KEY], gone)
        return [
            {provider: Use(*use) for provider, use in each.uses.items()}
            for each in told.values()
            if each.at_ms > since_ms
        ]
