"""Which gateways there are and how far each has shipped, told to each other through the store.

One hash, `weir:{gateways}`: a field for each gateway by its journal's id, with when it was last
seen and the instant that it has *shipped through*. All that it had recorded by that instant is
committed in Postgres, and the store of leases has taken the settlements that were late by then.
Whoever sums a month from Postgres asks for an instant and waits until every gateway has shipped
through it.

A second hash, `weir:{gateways}.journal`, says how far each journal is on its disk: where the disk
is lost, that says how much is. It is not in the first hash, whose fields an older release reads.
A third, `weir:{gateways}.applied`, is that of `confirmations`.

A gateway that was not seen for a minute no longer counts: what it has not shipped is not in such a
sum, and is added when it comes back and ships. One that lives and cannot ship is waited for.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from typing import NamedTuple, Protocol, cast

import asyncpg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.journals_behind import close_if_shipped
from gateway.adapters.scripts import Store, called
from gateway.adapters.second_copy_records import Copies
from gateway.adapters.shipper import Mark
from gateway.domain.presence import (
    NOT_HEARD,
    Heartbeat,
    Standing,
    forgotten,
    is_whole,
    present,
    waited_for,
)
from gateway.serving.ports import Births, LedgerUnavailable

GATEWAYS_KEY = "weir:{gateways}"
JOURNALS_KEY = "weir:{gateways}.journal"
APPLIED_KEY = "weir:{gateways}.applied"
_SLOT = "gateways"
"""Whose birth is that of the list: what shares its tag shares its hash slot."""
PERIOD_S = 0.25
REACH_MS = 200
CLOSE_TIMEOUT_S = 2.0
_AWAY = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
_TELL = (files("gateway.adapters") / "lua" / "presence.lua").read_text()
_READ = (files("gateway.adapters") / "lua" / "presence_read.lua").read_text()
_READ_JOURNALS = "return redis.call('HGETALL', KEYS[1])"
_FORGET = "return redis.call('HDEL', KEYS[1], unpack(ARGV))"
logger = logging.getLogger(__name__)


class Shipping(Protocol):
    """A gateway's own shipper."""

    def mark(self) -> Mark:
        """How far the journal is written now."""

    async def wait_shipped(self, mark: Mark, *, timeout_ms: int) -> bool:
        """Whether all up to `mark` is in Postgres, waiting a while for it."""


class Census(NamedTuple):
    """The list of gateways at one moment of the store's time."""

    standings: dict[str, Standing]
    now_ms: int
    is_whole: bool
    """Whether every gateway that serves has had time to enter it."""


class Gateways:
    """The list of gateways, as anybody reads it. Every method raises LedgerUnavailable.

    Implements `serving.month_ports.Shipping`.
    """

    def __init__(self, store: Store, births: Births) -> None:
        self._births = births
        self._copies = Copies(store)
        self._script_tell = store.register_script(_TELL)
        self._script_read = store.register_script(_READ)
        self._script_read_journals = store.register_script(_READ_JOURNALS)
        self._script_forget = store.register_script(_FORGET)

    async def ask(self) -> int:
        """An instant after all that has happened: what a gateway had recorded before this call is
        in Postgres once it has shipped through that instant."""
        return await self.tell("", 0)

    async def waited_for(self, instant_ms: int) -> tuple[str, ...]:
        """Gateways that may have recorded something by `instant_ms` that is not in Postgres; empty
        where there are none."""
        began_ms, now_ms, gateways = await self._list()
        old = forgotten(gateways, now_ms=now_ms)
        if old:
            await called(self._script_forget, [GATEWAYS_KEY], old)
        born_ms = await self._births.born_ms(_SLOT)
        if not is_whole(began_ms=began_ms, born_ms=born_ms, now_ms=now_ms):
            return (NOT_HEARD,)
        return waited_for(gateways, instant_ms, now_ms=now_ms)

    async def present(self) -> tuple[str, ...] | None:
        """The gateways that count, by name; None where the list may lack one."""
        began_ms, now_ms, gateways = await self._list()
        if began_ms is None:
            return None
        born_ms = await self._births.born_ms(_SLOT)
        if not is_whole(began_ms=began_ms, born_ms=born_ms, now_ms=now_ms):
            return None
        return present(gateways, now_ms=now_ms)

    async def standings(self) -> dict[str, Standing]:
        """Every gateway that is known, also one that was not seen for long and whose journal was
        never shipped whole."""
        return (await self.census()).standings

    async def census(self) -> Census:
        """The same, with when that was, and whether it is all of them."""
        began_ms, now_ms, gateways = await self._list()
        born_ms = await self._births.born_ms(_SLOT)
        reply = cast("list[bytes]", await called(self._script_read_journals, [JOURNALS_KEY]))
        for name, value in zip(reply[::2], reply[1::2], strict=True):
            at_ms, journal = _journal(value)
            known = gateways.get(name.decode(), Standing(at_ms, 0))
            gateways[name.decode()] = replace(known, journal=journal)
        whole = is_whole(began_ms=began_ms, born_ms=born_ms, now_ms=now_ms)
        return Census(gateways, now_ms, whole)

    async def tell(self, gateway_id: str, through_ms: int, journal: Heartbeat | None = None) -> int:
        """Enter that a gateway is here, has shipped through an instant and how far its journal is;
        returns the present instant."""
        keys = [GATEWAYS_KEY]
        arguments: list[str | int] = [gateway_id, through_ms]
        if journal is not None:
            keys.append(JOURNALS_KEY)
            arguments.append(_told(journal))
        return int(cast("bytes", await called(self._script_tell, keys, arguments)))

    async def forget(self, gateway_id: str) -> None:
        """Take a gateway off the list, and the second copies of what it had: its journal is in
        Postgres whole, with nothing open."""
        for key in (GATEWAYS_KEY, JOURNALS_KEY, APPLIED_KEY):
            await called(self._script_forget, [key], [gateway_id])
        await self._copies.forget(gateway_id)

    async def _list(self) -> tuple[int | None, int, dict[str, Standing]]:
        """When the list began, None where there is none; the present time; the gateways."""
        present, *reply = cast("list[bytes]", await called(self._script_read, [GATEWAYS_KEY]))
        fields = dict(zip(reply[::2], reply[1::2], strict=True))
        began = fields.pop(b"began", None)
        fields.pop(b"clock", None)
        gateways = {name.decode(): _standing(value) for name, value in fields.items()}
        return None if began is None else int(began), int(present), gateways


class Presence:
    """Enters this gateway in the list, four times a second.

    `owed` names the requests that are recorded and whose settlement the store has not taken,
    `heartbeat` says how far the journal is. `postgres` remembers who was seen, where it is told
    that this gateway has left.
    """

    def __init__(
        self,
        gateways: Gateways,
        gateway_id: str,
        shipper: Shipping,
        *,
        owed: Callable[[], frozenset[str]] = frozenset,
        heartbeat: Callable[[], Heartbeat | None] = lambda: None,
        postgres: AsyncEngine | None = None,
    ) -> None:
        self._gateways = gateways
        self._gateway_id = gateway_id
        self._shipper = shipper
        self._owed = owed
        self._heartbeat = heartbeat
        self._postgres = postgres
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
        instant_ms = await self._tell()
        if self._aim is None:
            # The store's time first, then what is recorded: what ends between counts as later.
            self._aim = _Aim(instant_ms, self._shipper.mark(), self._owed())
        aim = self._aim
        shipped = await self._shipper.wait_shipped(aim.mark, timeout_ms=REACH_MS)
        if shipped and not aim.owed & self._owed():
            self._aim, self._through_ms = None, aim.instant_ms
            await self._tell()

    async def _tell(self) -> int:
        return await self._gateways.tell(self._gateway_id, self._through_ms, self._heartbeat())

    async def leave(self) -> None:
        """This gateway ends and has shipped all: nobody need wait for it, nor miss anything of its.
        Raises LedgerUnavailable; where Postgres is away, a reaper closes it later."""
        # The list first: who reads it after that does not write down that this gateway was seen.
        await self._gateways.forget(self._gateway_id)
        if self._postgres is None:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S), self._postgres.begin() as connection:
                await close_if_shipped(connection, self._gateway_id)
        except _AWAY as error:
            logger.warning("presence: not closed (%s)", type(error).__name__)


class _Aim(NamedTuple):
    """What has to be in the stores before an instant is shipped through."""

    instant_ms: int
    mark: Mark
    owed: frozenset[str]


def _standing(value: bytes) -> Standing:
    seen, _, through = value.partition(b"|")
    return Standing(int(seen), int(through))


def _told(journal: Heartbeat) -> str:
    parts = (journal.boot, journal.durable_seq, journal.open_count, journal.shipped_seq)
    return "|".join(map(str, parts))


def _journal(value: bytes) -> tuple[int, Heartbeat]:
    """When it was told, and what; a later release may have said more after that."""
    boot, durable_seq, open_count, shipped_seq, at_ms = map(int, value.split(b"|")[:5])
    return at_ms, Heartbeat(boot, durable_seq, open_count, shipped_seq)
