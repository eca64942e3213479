"""Whether a store that answers has lost what it had acknowledged: back from an old snapshot, a
restored backup, or a replica that lacked the last writes.

Each gateway keeps a number in the store, its pulse, that rises with each of its pings, and
remembers the highest that it was told. A store in which it is lower, under the same mark of birth
(`births`), has gone back: windows, leases and spend in it are those of back then. Whoever sees it
marks it as born now, and what tenants had there is removed, so that each begins as after a loss.
The number is each gateway's own: one that all raised together could reach its old height before the
one gateway that knows better has looked.

Looked at before anything else goes over a new connection, and in every ping. A mark that is missing
is not judged here: then the store is empty, and `births` dates that. What nobody has seen beat is
not known: a gateway that starts after the store went back cannot tell.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from redis.exceptions import NoPermissionError, ReadOnlyError, ResponseError

from gateway.adapters.ledger_scripts import KEYS
from gateway.adapters.redis import Script, StoreLost
from gateway.adapters.redis_link import Argument
from gateway.domain.window import WINDOW_CELLS

BORN_KEY = "weir:born"
PULSE_KEY = "weir:pulse"
GATEWAYS_KEY = "weir:{gateways}"
STEP_S = 2.0
"""A command of the look at a new connection takes no longer, or the connection is given up."""
SCAN_COUNT = 500
CLEARED_AT_ONCE = 100
"""Tenants that one script removes."""
_TENANTS_KEY = re.compile(r"weir:\{([^}]+)\}:")
_log = logging.getLogger(__name__)
Ask = Callable[..., Awaitable[Any]]

# KEYS 1 the mark of birth, 2 `lost` until what was before is removed, 3 the gateway's own beat
# ARGV the highest that was seen: 1 the mark, -1 where nothing was, 2 the beat
# Reply: {the mark, -1 where there is none, the beat, `lost` or empty, 1 where that is found now}
BEAT = """\
local born = tonumber(redis.call('GET', KEYS[1]) or '-1')
local beat = tonumber(redis.call('GET', KEYS[3]) or '0')
local seen_born, seen_beat = tonumber(ARGV[1]), tonumber(ARGV[2])
local is_lost = 0
if born >= 0 and (born < seen_born or (born == seen_born and beat < seen_beat)) then
  local t = redis.call('TIME')
  born = math.max(t[1] * 1000 + math.floor(t[2] / 1000), seen_born + 1)
  local mark = string.format('%.0f', born)
  redis.call('SET', KEYS[1], mark)
  redis.call('HSET', KEYS[2], 'lost', mark)
  is_lost = 1
end
beat = redis.call('INCR', KEYS[3])
redis.call('EXPIRE', KEYS[3], 86400)
return { string.format('%.0f', born), beat, redis.call('HGET', KEYS[2], 'lost') or '', is_lost }
"""
# KEYS those of some tenants, the book of each first; ARGV 1 a tenant begun since the loss has its
# tokens complete from then on or later, 2 how many keys a tenant has
_REMOVE = """\
local each = tonumber(ARGV[2])
for i = 1, #KEYS, each do
  local meta, tokens_from, _ = redis.call('HGET', KEYS[i], '@'), 0
  if meta then
    _, tokens_from = struct.unpack('<dd', meta)
  end
  if tokens_from < tonumber(ARGV[1]) then
    redis.call('UNLINK', unpack(KEYS, i, i + each - 1))
  end
end
"""
# KEYS 1 the list of gateways, 2 the pulse; ARGV 1 when it was lost
_FINISH = """\
if tonumber(redis.call('HGET', KEYS[1], 'began') or '0') < tonumber(ARGV[1]) then
  redis.call('DEL', KEYS[1])
end
if redis.call('HGET', KEYS[2], 'lost') == ARGV[1] then
  redis.call('HDEL', KEYS[2], 'lost')
end
"""


class Pulse:
    """What this process has seen of a single server's pulse, or of the primary's behind Sentinels.

    Not for a cluster, whose keys are on several servers.
    """

    beat_source = BEAT

    def __init__(self) -> None:
        self._keys = (BORN_KEY, PULSE_KEY, f"{PULSE_KEY}:{secrets.token_hex(8)}")
        self._seen = (-1, 0)

    async def beat(self, run: Script) -> None:
        """Let it rise, over a connection that is in use. Raises StoreLost where the store has gone
        back: then `examine` has to look at a new connection."""
        _, lost, _ = self._heard(await run([*self._keys], [*self._seen]))
        if lost:
            raise StoreLost("the store has lost what it had acknowledged")

    async def examine(self, ask: Ask) -> None:
        """Look at a new connection before it is used, and remove what is from before a loss.

        `ask` sends one command. Raises what it raises; but a server that runs no scripts passes,
        as it decides nothing: `beat` fails there until it does.
        """
        try:
            reply = await _soon(ask, "EVAL", BEAT, 3, *self._keys, *self._seen)
        except ReadOnlyError:
            raise
        except ResponseError as error:
            if isinstance(error, NoPermissionError) or str(error).startswith("ERR "):
                _log.warning("the store's pulse is not seen: %s", type(error).__name__)
                return
            raise
        born_ms, lost, is_found_now = self._heard(reply)
        if is_found_now:
            _log.error(
                "Redis has lost what it had acknowledged: it is taken for empty since %d", born_ms
            )
        if lost:
            await _clear(ask, lost)

    def _heard(self, reply: Sequence[Any]) -> tuple[int, str, bool]:
        born, beat, lost, is_found_now = reply
        if int(born) >= 0:
            self._seen = max(self._seen, (int(born), int(beat)))
        return int(born), cast("bytes", lost).decode(), bool(is_found_now)


async def _clear(ask: Ask, lost: str) -> None:
    """Remove what tenants had before; those begun since are let be, so any number of gateways may
    do it at once, and whoever is interrupted leaves the rest to the next."""
    cursor = b"0"
    removed: set[str] = set()
    while True:
        cursor, names = await _soon(ask, "SCAN", cursor, "MATCH", "weir:{*}:*", "COUNT", SCAN_COUNT)
        found = {match[1] for name in names if (match := _TENANTS_KEY.match(name.decode()))}
        await _remove(ask, sorted(found - removed), lost)
        removed |= found
        if cursor == b"0":
            break
    await _soon(ask, "EVAL", _FINISH, 2, GATEWAYS_KEY, PULSE_KEY, lost)
    _log.warning("what %d tenants had in Redis before the loss is removed", len(removed))


async def _remove(ask: Ask, tenants: Sequence[str], lost: str) -> None:
    complete_ms = int(lost) + WINDOW_CELLS * 1000
    for start in range(0, len(tenants), CLEARED_AT_ONCE):
        some = tenants[start : start + CLEARED_AT_ONCE]
        keys = [f"weir:{{{tenant}}}:{key}" for tenant in some for key in KEYS]
        await _soon(ask, "EVAL", _REMOVE, len(keys), *keys, complete_ms, len(KEYS))


async def _soon(ask: Ask, *command: Argument) -> Any:
    async with asyncio.timeout(STEP_S):
        return await ask(*command)
