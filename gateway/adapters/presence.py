"""Which gateways there are and how far each has shipped, told to each other through the store.

One hash, `weir:{gateways}`: a field for each gateway by its journal's id, with when it was last
seen and the instant that it has *shipped through*. All that it had recorded by that instant is
committed in Postgres, and the store of leases has taken the settlements that were late by then.
Whoever sums a month from Postgres asks for an instant and waits until every gateway has shipped
through it.

A gateway that was not seen for a minute no longer counts: what it has not shipped is not in such a
sum, and is added when it comes back and ships. One that lives and cannot ship is waited for.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple, Protocol, cast

from redis.exceptions import RedisError

from gateway.adapters.shipper import Mark
from gateway.domain.presence import NOT_HEARD, Standing, forgotten, is_whole, waited_for
from gateway.serving.ports import Births, LedgerUnavailable

GATEWAYS_KEY = "weir:{gateways}"
_SLOT = "gateways"
"""Whose birth is that of the list: what shares its tag shares its hash slot."""
PERIOD_S = 0.25
REACH_MS = 200
CALL_TIMEOUT_S = 0.25
_TELL = (files("gateway.adapters") / "lua" / "presence.lua").read_text()
_READ = (files("gateway.adapters") / "lua" / "presence_read.lua").read_text()
_FORGET = "return redis.call('HDEL', KEYS[1], unpack(ARGV))"
logger = logging.getLogger(__name__)


class Script(Protocol):
    """A script of the store, called with its keys and arguments."""

    def __call__(self, keys: Sequence[str], args: Sequence[str | int]) -> Awaitable[Any]: ...


class Store(Protocol):
    """What is asked of a Redis client, of one server or of a cluster: scripts on one key."""

    def register_script(self, source: str) -> Script: ...


class Shipping(Protocol):
    """A gateway's own shipper."""

    def mark(self) -> Mark:
        """How far the journal is written now."""

    async def wait_shipped(self, mark: Mark, *, timeout_ms: int) -> bool:
        """Whether all up to `mark` is in Postgres, waiting a while for it."""


class Gateways:
    """The list of gateways, as anybody reads it. Every method raises LedgerUnavailable.

    Implements `serving.month_ports.Shipping`.
    """

    def __init__(self, store: Store, births: Births) -> None:
        self._births = births
        self._script_tell = store.register_script(_TELL)
        self._script_read = store.register_script(_READ)
        self._script_forget = store.register_script(_FORGET)

    async def ask(self) -> int:
        """An instant after all that has happened: what a gateway had recorded before this call is
        in Postgres once it has shipped through that instant."""
        return await self.tell("", 0)

    async def waited_for(self, instant_ms: int) -> tuple[str, ...]:
        """Gateways that may have recorded something by `instant_ms` that is not in Postgres; empty
        where there are none."""
        present, *reply = cast("list[bytes]", await _called(self._script_read))
        fields = dict(zip(reply[::2], reply[1::2], strict=True))
        began, now_ms = fields.pop(b"began", None), int(present)
        fields.pop(b"clock", None)
        gateways = {name.decode(): _standing(value) for name, value in fields.items()}
        old = forgotten(gateways, now_ms=now_ms)
        if old:
            await _called(self._script_forget, *old)
        began_ms = None if began is None else int(began)
        born_ms = await self._births.born_ms(_SLOT)
        if not is_whole(began_ms=began_ms, born_ms=born_ms, now_ms=now_ms):
            return (NOT_HEARD,)
        return waited_for(gateways, instant_ms, now_ms=now_ms)

    async def tell(self, gateway_id: str, through_ms: int) -> int:
        """Enter that a gateway is here and has shipped through an instant; returns the present
        one."""
        return int(cast("bytes", await _called(self._script_tell, gateway_id, through_ms)))

    async def forget(self, gateway_id: str) -> None:
        """Take a gateway off the list."""
        await _called(self._script_forget, gateway_id)


class Presence:
    """Enters this gateway in the list, four times a second.

    `owed` names the requests that are recorded and whose settlement the store has not taken.
    """

    def __init__(
        self,
        gateways: Gateways,
        gateway_id: str,
        shipper: Shipping,
        *,
        owed: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._gateways = gateways
        self._gateway_id = gateway_id
        self._shipper = shipper
        self._owed = owed
        self._through_ms = 0
        self._aim: _Aim | None = None
        self._failing = False

    async def run(self) -> None:
        """Publish, for ever; a store that is away is tried again at the next turn."""
        while True:
            began_s = time.monotonic()
            try:
                await self.publish()
                self._failing = False
            except LedgerUnavailable as error:
                if not self._failing:
                    logger.warning("presence: not published (%s)", error.reason.__name__)
                self._failing = True
            await asyncio.sleep(max(0.01, began_s + PERIOD_S - time.monotonic()))

    async def publish(self) -> None:
        """One turn: say that this gateway is here, and how far it has shipped as soon as it has.
        Raises LedgerUnavailable."""
        instant_ms = await self._gateways.tell(self._gateway_id, self._through_ms)
        if self._aim is None:
            # The store's time first, then what is recorded: what ends between counts as later.
            self._aim = _Aim(instant_ms, self._shipper.mark(), self._owed())
        aim = self._aim
        shipped = await self._shipper.wait_shipped(aim.mark, timeout_ms=REACH_MS)
        if shipped and not aim.owed & self._owed():
            self._aim, self._through_ms = None, aim.instant_ms
            await self._gateways.tell(self._gateway_id, self._through_ms)

    async def leave(self) -> None:
        """This gateway ends and has shipped all: nobody need wait for it. Raises
        LedgerUnavailable."""
        await self._gateways.forget(self._gateway_id)


class _Aim(NamedTuple):
    """What has to be in the stores before an instant is shipped through."""

    instant_ms: int
    mark: Mark
    owed: frozenset[str]


def _standing(value: bytes) -> Standing:
    seen, _, through = value.partition(b"|")
    return Standing(int(seen), int(through))


async def _called(script: Script, *arguments: str | int) -> object:
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            return await script([GATEWAYS_KEY], arguments)
    except (RedisError, OSError, TimeoutError) as error:
        raise LedgerUnavailable(type(error)) from error
