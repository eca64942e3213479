"""Runs the ledger's scripts on one tenant's keys, and begins what the store does not know."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import cast

from redis.exceptions import RedisError

from gateway.adapters.redis import RedisClient, Script
from gateway.domain.window import WINDOW_CELLS
from gateway.serving.ports import Births, LedgerUnavailable

_USUAL = {"acquire": ("grant",), "settle": ("finish",)}
"""The usual case of a script, which comes first and does without the rest."""
_BEFORE = ("rest", "window")
_REAP = ("moves", "money", "funds", "shelf", "reap")
PARTS = {
    "acquire": ("open", "set_right", "offer", "wait", "money", "close", "save_all"),
    "settle": ("open", "moves", "money", "close", "save_all"),
    "renew": ("open", "set_right", "moves", "money", "funds", "shelf", "close"),
    "observe": ("open", "offer", "close"),
    "begin": ("close",),
    "begin_month": ("open", "money", "funds", "shelf", "close"),
    "finish_month": ("open", "money", "funds", "close"),
    "unsettled": ("open", "close"),
}
"""What each script is joined from, before its own file."""
_CONSTANT = re.compile(r"^\s*local ([A-Z][A-Z_]*) = ([^-{(\n]+?|-1)(?: *--.*)?$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*(--.*)?\n", re.MULTILINE)
_INSERT = re.compile(r"^ *-- insert (\w+)\n", re.MULTILINE)
_EACH = re.compile(r"^ *-- each scope\n(.*?)^ *-- end each\n", re.MULTILINE | re.DOTALL)
KEYS = ("book", "due", "money", "recent")
KEYS_KEPT = 4096
_UNBORN, _AGAIN = -1, -2
_LOOKS = frozenset({"observe"})

Argument = str | int | bytes


@cache
def script_source(name: str) -> str:
    """A script whole. What is done with what has lapsed is one function, so that all it needs is
    only made where something has; constants are written where they are used."""
    source = "".join(map(_text, ("head", *_USUAL.get(name, ()), *_BEFORE)))
    source += "".join(["local function reap(meta)\n", *map(_text, _REAP), "end\n"])
    source += "".join(map(_text, (*PARTS[name], name)))
    constants = dict(_CONSTANT.findall(source))
    source = _CONSTANT.sub("", source)
    return re.sub(r"\b[A-Z][A-Z_]*\b", lambda found: constants.get(found[0], found[0]), source)


def _text(part: str) -> str:
    """One file, without its comments. What is said of each scope, with N for its number, is written
    four times over: so it needs neither a function nor a table."""
    text = _INSERT.sub(lambda found: _file(found[1]), _file(part))
    text = _EACH.sub(lambda found: "".join(_numbered(found[1], n) for n in "1234"), text)
    return _COMMENT.sub("", text)


def _numbered(text: str, number: str) -> str:
    return re.sub(r"\bN\b|(?<=_)N\b", number, text)


def _file(part: str) -> str:
    return (files("gateway.adapters") / "lua" / f"{part}.lua").read_text()


@lru_cache(maxsize=KEYS_KEPT)
def _keys(tenant_id: str) -> tuple[str, ...]:
    return tuple(f"weir:{{{tenant_id}}}:{key}" for key in KEYS)


class LedgerScripts:
    """Every run is one atomic script on keys that share a hash slot.

    Where the store knows nothing of the tenant, `births` is asked since when, and the tenant is
    begun; where more leases have lapsed than one script takes care of, it is run again. All of that
    may take `timeout_ms`, beside what the client allows a single call. `on_begun` is told who was
    begun, since when the store remembers (Unix ms, 0 where it never lost anything), and whether
    somebody only looked. `clock_ms` replaces the server's time in tests.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        births: Births | None,
        ttl_ms: int,
        timeout_ms: int,
        clock_ms: Callable[[], int] | None,
        on_begun: Callable[[str, int, bool], Awaitable[None]],
    ) -> None:
        self._births = births
        self._on_begun = on_begun
        self._ttl_ms = ttl_ms
        self._timeout_s = timeout_ms / 1000
        self._clock_ms = clock_ms
        self._scripts: dict[str, Script] = {
            name: redis.register_script(script_source(name)) for name in PARTS
        }

    async def run(
        self, name: str, tenant_id: str, arguments: Sequence[Argument], *, is_urgent: bool = True
    ) -> list[object]:
        """The script's reply, an array or bytes.

        Raises LedgerUnavailable; then it may or may not have taken effect. What is not
        urgent may be run again for as long as it takes.
        """
        try:
            reply = await self._once(name, tenant_id, arguments)
            if reply[0] not in (_UNBORN, _AGAIN):
                return reply
            async with asyncio.timeout(self._timeout_s if is_urgent else None):
                while reply[0] in (_UNBORN, _AGAIN):
                    if reply[0] == _UNBORN:
                        await self._begin(tenant_id, is_look=name in _LOOKS)
                    reply = await self._once(name, tenant_id, arguments)
                return reply
        except (RedisError, OSError, TimeoutError) as error:
            raise LedgerUnavailable(type(error)) from error

    async def _begin(self, tenant_id: str, *, is_look: bool) -> None:
        born_ms = 0 if self._births is None else await self._births.born_ms(tenant_id)
        complete = (born_ms + self._ttl_ms, born_ms + WINDOW_CELLS * 1000) if born_ms else (0, 0)
        await self._once("begin", tenant_id, (*complete, self._ttl_ms))
        await self._on_begun(tenant_id, born_ms, is_look)

    async def _once(self, name: str, tenant_id: str, arguments: Sequence[Argument]) -> list[object]:
        now = "" if self._clock_ms is None else self._clock_ms()
        return cast("list[object]", await self._scripts[name](_keys(tenant_id), (now, *arguments)))
