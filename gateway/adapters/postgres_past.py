"""What the store remembers of what Postgres held, so that one that was restored from a backup is
noticed, and what it lacks by that is known although nobody serves any more who could say so.

Beside the list of gateways: `weir:{gateways}.shipped`, a field for each boot of each gateway's
journal with how far it was in Postgres and when that was last more; `weir:{gateways}.audit`, the
newest entry of the audit log; `weir:{gateways}.restored`, there from when entries of it were missed
until somebody confirms that what was lost is known.

A journal of which Postgres lacks what it had is entered in `gateway_seen` as one that is expected:
usage is not complete, invoices wait and reconciliation names it, as for any gateway that is behind.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, cast
from uuid import uuid4

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.postgres.gateways_seen import Seen, expect_again
from billing.postgres.journal_watermarks import load_shipped
from gateway.adapters.number_past import NumberPast, load_numbers, load_owners
from gateway.adapters.price_past import PricePast, load_fresh
from gateway.adapters.repeating import AWAY as POSTGRES_AWAY
from gateway.adapters.scripts import Store, called
from gateway.adapters.tables import audit_log
from gateway.domain.postgres_past import AuditHead, Boot, Restored, lacking, restored
from gateway.serving.month_ports import Turns
from gateway.serving.ports import LedgerUnavailable

SHIPPED_KEY = "weir:{gateways}.shipped"
AUDIT_KEY = "weir:{gateways}.audit"
RESTORED_KEY = "weir:{gateways}.restored"
PERIOD_S = 5.0
STORE_TIMEOUT_S = 15.0
TURN = ("gateways", "past")
"""The turn's tag and name."""
AWAY = (LedgerUnavailable, *POSTGRES_AWAY)
_READ = """
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local audit, restored = redis.call('GET', KEYS[2]), redis.call('GET', KEYS[3])
return { now, audit or '', restored or '', redis.call('HGETALL', KEYS[1]) }
"""
_SET = "return redis.call('SET', KEYS[1], ARGV[1])"
_ENTER = "return redis.call('HSET', KEYS[1], unpack(ARGV))"
_DROP = "return redis.call('HDEL', KEYS[1], unpack(ARGV))"
_FORGET = "return redis.call('DEL', KEYS[1])"
AT_ONCE = 500
"""So many gateways are entered by one call."""
logger = logging.getLogger(__name__)


class Memory(NamedTuple):
    """All of it at one moment of the store's time."""

    now_ms: int
    shipped: Mapping[Boot, int]
    at_ms: Mapping[Boot, int]
    """When a boot's number was entered."""
    audit: AuditHead | None
    restored: Restored | None


class PostgresPast:
    """What the store remembers. Every method raises LedgerUnavailable."""

    def __init__(self, store: Store) -> None:
        self._script_read = store.register_script(_READ)
        self._script_set = store.register_script(_SET)
        self._script_enter = store.register_script(_ENTER)
        self._script_drop = store.register_script(_DROP)
        self._script_forget = store.register_script(_FORGET)

    async def read(self) -> Memory:
        """All of it."""
        keys = [SHIPPED_KEY, AUDIT_KEY, RESTORED_KEY]
        now, audit, found, reply = cast(
            "tuple[bytes, bytes, bytes, list[bytes]]", await called(self._script_read, keys)
        )
        told = {
            _boot(name): tuple(map(int, value.split(b"|")[:2]))
            for name, value in zip(reply[::2], reply[1::2], strict=True)
        }
        number, _, digest = audit.decode().partition("|")
        return Memory(
            int(now),
            {boot: seq for boot, (seq, _) in told.items()},
            {boot: at_ms for boot, (_, at_ms) in told.items()},
            AuditHead(int(number), digest) if audit else None,
            Restored(*map(int, found.split(b"|")[:3])) if found else None,
        )

    async def enter(self, shipped: Mapping[Boot, int], *, now_ms: int) -> None:
        """Postgres holds so much of these."""
        told = [(_field(boot), f"{seq}|{now_ms}") for boot, seq in shipped.items()]
        for start in range(0, len(told), AT_ONCE):
            some = [part for pair in told[start : start + AT_ONCE] for part in pair]
            await called(self._script_enter, [SHIPPED_KEY], some)

    async def drop(self, boots: Sequence[Boot]) -> None:
        """Nobody need remember these any longer."""
        for start in range(0, len(boots), AT_ONCE):
            some = [_field(boot) for boot in boots[start : start + AT_ONCE]]
            await called(self._script_drop, [SHIPPED_KEY], some)

    async def enter_audit(self, head: AuditHead) -> None:
        """The audit log ends with this."""
        await called(self._script_set, [AUDIT_KEY], [f"{head.id}|{head.hash}"])

    async def enter_restored(self, found: Restored) -> None:
        """Changes are gone, until `confirm`."""
        await called(self._script_set, [RESTORED_KEY], ["|".join(map(str, found))])

    async def confirm(self) -> None:
        """What is gone is known."""
        await called(self._script_forget, [RESTORED_KEY])


class RestoreWatch:
    """Compares, every 5 s, one gateway at a time; each sees what was found.

    What was shipped `kept_ms` ago or more is not remembered: by then no journal has it either.
    """

    def __init__(
        self,
        store: Store,
        engine: AsyncEngine,
        turns: Turns,
        *,
        kept_ms: int,
        period_s: float = PERIOD_S,
    ) -> None:
        self._past = PostgresPast(store)
        self._prices = PricePast(store)
        self._numbers = NumberPast(store)
        self._engine = engine
        self._turns = turns
        self._holder = uuid4().hex
        self._kept_ms = kept_ms
        self._period_s = period_s
        self._failing = False
        self.restored: Restored | None = None
        """That changes of administrators are gone, as it was last seen."""

    async def run(self) -> None:
        """A turn each period, for ever; whatever fails is tried again."""
        while True:
            try:
                await self.turn()
                self._failing = False
            except AWAY as error:
                if not self._failing:
                    logger.warning("restore watch: not now (%s)", type(error).__name__)
                self._failing = True
            except Exception:
                logger.exception("restore watch: unexpected failure")
            await asyncio.sleep(self._period_s)

    async def turn(self) -> None:
        """See what was found and, where it is this gateway's turn, compare and remember. Raises one
        of AWAY."""
        # The store first: what Postgres is asked after that is at least as far.
        memory = await self._past.read()
        self.restored = memory.restored
        if not await self._turns.claim(*TURN, self._holder):
            return
        newest, numbers = await self._prices.newest(), await self._numbers.read()
        async with asyncio.timeout(STORE_TIMEOUT_S), self._engine.begin() as connection:
            fresh = await load_fresh(connection, newest)
            numbered = await load_numbers(connection)
            owners = await load_owners(connection, numbers, numbered)
            shipped = await load_shipped(connection, recent=timedelta(milliseconds=self._kept_ms))
            held = {Boot(each.gateway_id, each.boot): each.seq for each in shipped}
            gone = lacking(memory.shipped, held)
            noted = await expect_again(connection, _expected(gone, held, memory.now_ms))
            head = await audit_head(connection)
            there = None
            if memory.audit is not None:
                there = await audit_hash(connection, memory.audit.id)
        if noted:
            logger.error("Postgres was restored: it lacks of %d boots what it had", noted)
        for table, rows in fresh.items():
            await self._prices.enter(table, rows)
        await self._numbers.enter_owners(owners)
        await self._numbers.enter(numbers, numbered)
        recent = {Boot(each.gateway_id, each.boot) for each in shipped if each.is_recent}
        await self._remember(memory, {boot: held[boot] for boot in recent})
        await self._remember_changes(memory, head, there)

    async def _remember(self, memory: Memory, held: Mapping[Boot, int]) -> None:
        since_ms = memory.now_ms - self._kept_ms
        old = [boot for boot, at_ms in memory.at_ms.items() if at_ms <= since_ms]
        further = {boot: seq for boot, seq in held.items() if memory.shipped.get(boot, 0) < seq}
        await self._past.drop([boot for boot in old if boot not in further])
        await self._past.enter(further, now_ms=memory.now_ms)

    async def _remember_changes(
        self, memory: Memory, head: AuditHead, hash_there: str | None
    ) -> None:
        found = restored(
            memory.restored, memory.audit, head=head, hash_there=hash_there, now_ms=memory.now_ms
        )
        if found is not None and found != memory.restored:
            logger.error(
                "Postgres was restored: the audit log had entry %d and ends with %d",
                found.lost_id,
                found.head_id,
            )
            await self._past.enter_restored(found)
            self.restored = found
        if head != memory.audit:
            await self._past.enter_audit(head)


async def find_restored(memory: Memory, connection: AsyncConnection) -> Restored | None:
    """What is known of a restore by a look at Postgres now, after `memory` was read: nobody need
    have looked since. Changes nothing."""
    there = None
    if memory.audit is not None:
        there = await audit_hash(connection, memory.audit.id)
    return restored(
        memory.restored,
        memory.audit,
        head=await audit_head(connection),
        hash_there=there,
        now_ms=memory.now_ms,
    )


async def audit_head(connection: AsyncConnection) -> AuditHead:
    """The newest entry of the audit log; 0 where there is none."""
    columns = audit_log.c
    rows = await connection.execute(
        select(columns.id, columns.hash).order_by(columns.id.desc()).limit(1)
    )
    row = rows.one_or_none()
    return AuditHead(0, "") if row is None else AuditHead(row.id, row.hash.hex())


async def audit_hash(connection: AsyncConnection, entry_id: int) -> str | None:
    """The hash of an entry, None where it is not there; that of none, before the first."""
    if entry_id == 0:
        return ""
    found = await connection.scalar(select(audit_log.c.hash).where(audit_log.c.id == entry_id))
    return None if found is None else bytes(found).hex()


def _expected(gone: Mapping[Boot, int], held: Mapping[Boot, int], now_ms: int) -> list[Seen]:
    """As a gateway that was seen now and ships what it had shipped: it is given as long as any
    other before nobody waits for it."""
    return [
        Seen(
            gateway_id=boot.gateway_id,
            boot=boot.number,
            durable_seq=seq,
            shipped_seq=held.get(boot, 0),
            open_count=0,
            seen_at_ms=now_ms,
        )
        for boot, seq in gone.items()
    ]


def _field(boot: Boot) -> str:
    return f"{boot.gateway_id}|{boot.number}"


def _boot(field: bytes) -> Boot:
    gateway_id, _, number = field.decode().rpartition("|")
    return Boot(gateway_id, int(number))
