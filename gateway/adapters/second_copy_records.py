"""What a second copy says, and reading those of any gateway back."""

import logging
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from uuid import UUID

import msgspec
from redis.exceptions import RedisError

from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal.entries import encode_body
from gateway.adapters.second_copy import WRITES, Script, Store, copies_key
from gateway.domain.lease import Admitted
from gateway.serving.ports import LedgerUnavailable

PAGE = 200
_READ_PAGE = "return redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])"
_READ_NAMES = """\
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local names = {}
for i = 1, #page[2], 2 do names[#names + 1] = page[2][i] end
return { page[1], names }
"""
_READ = "return redis.call('HGETALL', KEYS[1])"
_READ_SOME = "return redis.call('HMGET', KEYS[1], unpack(ARGV))"
_TELL = """\
redis.call('DEL', KEYS[1])
for i = 1, #ARGV, 1000 do
  redis.call('HSET', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
return 0
"""
_FORGET = "return redis.call('DEL', KEYS[1])"
_BY_KIND = {
    b"A": msgspec.msgpack.Decoder(Admitted).decode,
    b"E": msgspec.msgpack.Decoder(UsageRecord).decode,
}
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Copy:
    """What the store knows of one request that Postgres may lack: its end, or its admission and
    how far it had come when that was last told (0 where it never was)."""

    request_id: UUID
    body: Admitted | UsageRecord
    prompt_tokens: int
    output_tokens: int


def encode_copy(body: Admitted | UsageRecord) -> bytes:
    """As it lies in the store."""
    return (b"A" if isinstance(body, Admitted) else b"E") + encode_body(body)


class Copies:
    """The copies of any gateway, and how far its requests have come. Every method raises
    LedgerUnavailable."""

    def __init__(self, store: Store) -> None:
        self._read_page = store.register_script(_READ_PAGE)
        self._read_names = store.register_script(_READ_NAMES)
        self._read = store.register_script(_READ)
        self._read_some = store.register_script(_READ_SOME)
        self._tell = store.register_script(_TELL)
        self._forget = store.register_script(_FORGET)

    async def of(self, gateway_id: str) -> AsyncIterator[Copy]:
        """All that were there from the beginning to the end of reading, some perhaps twice. One of
        a release that this one does not understand is left out, and said in the log."""
        told = await self._progress(gateway_id)
        async for name, value in self._copies(gateway_id):
            copy = _copy(gateway_id, name, value, told)
            if copy is not None:
                yield copy

    async def some(self, gateway_id: str, request_ids: Sequence[UUID]) -> list[Copy]:
        """Those of certain requests, as far as there are any that can be read."""
        told = await self._progress(gateway_id)
        found: list[Copy | None] = []
        for start in range(0, len(request_ids), PAGE):
            names = [request_id.hex for request_id in request_ids[start : start + PAGE]]
            call = self._read_some([copies_key(gateway_id)], names)
            values = cast("list[bytes | None]", await self._called(call))
            found += [
                None if value is None else _copy(gateway_id, name, value, told)
                for name, value in zip(names, values, strict=True)
            ]
        return [copy for copy in found if copy is not None]

    async def last_write(self, gateway_id: str) -> int | None:
        """The number of the last write to a gateway's copies, which rises with each; None where
        there is none."""
        call = self._read_some([copies_key(gateway_id)], [WRITES])
        (number,) = cast("list[bytes | None]", await self._called(call))
        return None if number is None else int(number)

    async def names(self, gateway_id: str) -> set[UUID]:
        """Which requests have a copy."""
        return {
            UUID(name.decode())
            async for page in self._pages(self._read_names, gateway_id)
            for name in page
            if name != WRITES
        }

    async def tell_progress(
        self, gateway_id: str, open_requests: Mapping[UUID, tuple[int, int]]
    ) -> None:
        """Prompt and output tokens so far of every request that is open, in place of what was told
        before."""
        arguments: list[str | int] = []
        for request_id, (prompt_tokens, output_tokens) in open_requests.items():
            arguments += (request_id.hex, f"{prompt_tokens}|{output_tokens}")
        await self._called(self._tell(_progress_keys(gateway_id), arguments))

    async def forget(self, gateway_id: str) -> None:
        """Remove all copies of a gateway whose journal is in Postgres."""
        await self._called(self._forget([copies_key(gateway_id)], []))
        await self._called(self._forget(_progress_keys(gateway_id), []))

    async def _progress(self, gateway_id: str) -> dict[str, tuple[int, int]]:
        reply = cast("list[bytes]", await self._called(self._read(_progress_keys(gateway_id), [])))
        told = {}
        for name, value in zip(reply[::2], reply[1::2], strict=True):
            prompt_tokens, _, output_tokens = value.partition(b"|")
            told[name.decode()] = (int(prompt_tokens), int(output_tokens))
        return told

    async def _copies(self, gateway_id: str) -> AsyncIterator[tuple[str, bytes]]:
        async for page in self._pages(self._read_page, gateway_id):
            for name, value in zip(page[::2], page[1::2], strict=True):
                if name != WRITES:
                    yield name.decode(), value

    async def _pages(self, script: Script, gateway_id: str) -> AsyncIterator[list[bytes]]:
        cursor = b"0"
        while True:
            page = await self._called(script([copies_key(gateway_id)], [cursor, PAGE]))
            cursor, found = cast("tuple[bytes, list[bytes]]", page)
            yield found
            if cursor == b"0":
                return

    async def _called(self, call: Awaitable[object]) -> object:
        try:
            return await call
        except (RedisError, OSError, TimeoutError) as error:
            raise LedgerUnavailable(type(error)) from error


def _progress_keys(gateway_id: str) -> list[str]:
    return [f"{copies_key(gateway_id)}.progress"]


def _copy(
    gateway_id: str, name: str, value: bytes, told: Mapping[str, tuple[int, int]]
) -> Copy | None:
    body = _decoded(value)
    if body is None:
        logger.error("second copy: %s of %s cannot be read", name, gateway_id)
        return None
    prompt_tokens, output_tokens = told.get(name, (0, 0))
    if isinstance(body, UsageRecord):
        prompt_tokens, output_tokens = body.prompt_tokens, body.output_tokens
    return Copy(UUID(name), body, prompt_tokens, output_tokens)


def _decoded(value: bytes) -> Admitted | UsageRecord | None:
    decode = _BY_KIND.get(value[:1])
    if decode is None:
        return None
    try:
        return cast("Admitted | UsageRecord", decode(value[1:]))
    except msgspec.DecodeError:
        return None
