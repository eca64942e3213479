"""Gateways tell each other through the store how far they follow the directory.

One hash, `weir:{gateways}.applied`, beside the list of gateways: a field for each by its journal's
id, `<seen>|<heard>,<heard>`. Who is there is the list's to say: a field alone claims nothing.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from redis.exceptions import RedisError

from gateway.adapters.presence import APPLIED_KEY, Gateways
from gateway.adapters.scripts import CALL_TIMEOUT_S, Store
from gateway.domain.confirmation import (
    NOTHING_SAID,
    Applied,
    Confirmation,
    Unknown,
    confirmation,
    not_known,
)
from gateway.serving.ports import LedgerUnavailable

PATIENCE_S = 1.2
"""Longest that the maker of a change waits for confirmations."""
LOOK_S = 0.025
FAILURES_MAX = 2
"""Looks that may fail; what was seen before still counts then."""
TELL_S = 1.0
"""A gateway repeats what it said, so that a store that lost it has it again."""
HEARD_MAX = 256
"""Of revocations that only Redis has told; one that is left out counts as unconfirmed."""
_TELL = "return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])"
_READ = "return redis.call('HGETALL', KEYS[1])"
logger = logging.getLogger(__name__)


class Confirmations:
    """What gateways have said, as anybody reads it. `gateways` says which there are."""

    def __init__(self, store: Store, gateways: Gateways) -> None:
        self._gateways = gateways
        self._script_tell = store.register_script(_TELL)
        self._script_read = store.register_script(_READ)

    async def tell(self, gateway_id: str, applied: Applied) -> None:
        """A gateway goes by this. Raises what the driver raises, TimeoutError after 0.25 s."""
        heard = ",".join(map(str, sorted(applied.heard)[-HEARD_MAX:]))
        async with asyncio.timeout(CALL_TIMEOUT_S):
            await self._script_tell([APPLIED_KEY], [gateway_id, f"{applied.seen}|{heard}"])

    async def wait(self, changed: int, *, patience_s: float = PATIENCE_S) -> Confirmation:
        """Who goes by the change: once all do, or after `patience_s`. Does not raise: a store that
        does not answer, or with what nobody can read, makes it unknown."""
        found = not_known(Unknown.STORE_UNAVAILABLE)
        failures = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while failures < FAILURES_MAX:
                    try:
                        found = await self._look(changed)
                    except (LedgerUnavailable, RedisError, OSError, TimeoutError, ValueError):
                        # A late reply is no store that is away; who has not confirmed by then has
                        # not.
                        failures += 1
                    else:
                        if found.is_complete or found.unknown is not None:
                            break
                    await asyncio.sleep(LOOK_S)
        return found

    async def _look(self, changed: int) -> Confirmation:
        present = await self._gateways.present()
        if present is None:
            return not_known(Unknown.GATEWAYS_UNHEARD)
        async with asyncio.timeout(CALL_TIMEOUT_S):
            reply = cast("list[bytes]", await self._script_read([APPLIED_KEY], []))
        said = zip(reply[::2], reply[1::2], strict=True)
        applied = {name.decode(errors="replace"): _applied(value) for name, value in said}
        return confirmation(present, applied, changed)


class Confirming:
    """Tells what this gateway goes by, as soon as it does."""

    def __init__(
        self,
        confirmations: Confirmations,
        gateway_id: str,
        applied: Callable[[], Applied],
        moved: asyncio.Event,
    ) -> None:
        """`moved` is set by the directory when `applied` changes."""
        self._confirmations = confirmations
        self._gateway_id = gateway_id
        self._applied = applied
        self._moved = moved

    async def run(self) -> None:
        """Tell, for ever; a store that is away is tried again at the next turn."""
        failing = False
        while True:
            self._moved.clear()
            try:
                await self._confirmations.tell(self._gateway_id, self._applied())
                failing = False
            except (RedisError, OSError, TimeoutError) as error:
                if not failing:
                    logger.warning("confirmations: not told (%s)", type(error).__name__)
                failing = True
            await self._until_moved()

    async def _until_moved(self) -> None:
        try:
            async with asyncio.timeout(TELL_S):
                await self._moved.wait()
        except TimeoutError:
            return


def _applied(value: bytes) -> Applied:
    """What a gateway said; nothing where it cannot be read. A later release may add parts."""
    try:
        seen, heard = value.split(b"|")[:2]
        return Applied(int(seen), frozenset(int(number) for number in heard.split(b",") if number))
    except ValueError:
        return NOTHING_SAID
