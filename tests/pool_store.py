"""A pool as its store has it: who waits, who runs, and whom its scripts granted."""

import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import redis

from gateway.adapters.pool_queue_scripts import CONSTANTS, keys_of


def _at(name: str) -> int:
    """Where a ticket's record has it."""
    at = CONSTANTS[f"K_{name}"]
    assert isinstance(at, int)
    return at - 1


_BEFORE_THE_LOT = "\1"
"""Stands between a gateway's name and its ticket's lot (`lua_queue/lines.lua`)."""
_TELLS_NOTHING = frozenset({b"\xff", b"\xfe"})
_NUMBERS = struct.Struct(f"<{_at('TENANT')}d")


@dataclass(frozen=True)
class Ticket:
    """What the store has of a request that waits or runs. Times are the store's, ms."""

    id: str
    tenant: str
    gateway: str
    lot: str
    worker: str
    band: int
    entered_ms: int
    deadline_ms: int
    granted_ms: int
    """0 while it waits."""
    cost: int
    """Weighted tokens that it is expected to be served."""

    @classmethod
    def of(cls, ticket_id: str, record: bytes) -> "Ticket":
        """As it is stored."""
        numbers = _NUMBERS.unpack_from(record)
        tenant, told_by, worker, *_ = record[_NUMBERS.size :].decode().split("\0")
        gateway, _, lot = told_by.partition(_BEFORE_THE_LOT)

        def number(name: str) -> int:
            return int(numbers[_at(name)])

        return cls(
            ticket_id, tenant, gateway, lot, worker, number("BAND"),
            number("ENTERED"), number("DEADLINE"), number("GRANTED"),
            number("COST"),
        )  # fmt: skip


class PoolStore:
    """One pool in the store, and all grants that its scripts tell of, in their order."""

    def __init__(self, url: str, pool: str) -> None:
        self._client: Any = redis.Redis.from_url(url)
        self._keys = keys_of(pool)
        self._tickets = self._keys[0]
        self.granted: list[str] = []
        """Ids in the order of the grants that were told by a message."""
        self.seen: list[Ticket] = []
        """What the store had of each of them then, but for what had ended already."""
        self._stop = threading.Event()
        self._hearing = threading.Thread(target=self._hear)

    def _hear(self) -> None:
        with self._client.pubsub() as heard:
            heard.psubscribe("weir:grants:*")
            while not self._stop.is_set():
                message = heard.get_message(timeout=0.1)
                if message is not None and message["type"] == "pmessage":
                    name, _, is_grant = msgspec.msgpack.decode(
                        message["data"], type=tuple[str, str, int]
                    )
                    if is_grant:
                        self.granted.append(name)
                        ticket = self.ticket(name)
                        if ticket is not None:
                            self.seen.append(ticket)

    @contextmanager
    def listening(self) -> Iterator["PoolStore"]:
        """Hear grants until the block ends."""
        self._hearing.start()
        while not self._client.pubsub_numpat():
            time.sleep(0.005)
        try:
            yield self
        finally:
            self._stop.set()
            self._hearing.join()
            self._client.close()

    def tickets(self) -> dict[str, Ticket]:
        """All that wait or run, by id."""
        records = self._client.hgetall(self._tickets)
        return {
            name.decode(): Ticket.of(name.decode(), record)
            for name, record in records.items()
            if name not in _TELLS_NOTHING
        }

    def ticket(self, ticket_id: str) -> Ticket | None:
        """One of them."""
        record = self._client.hget(self._tickets, ticket_id)
        return None if record is None else Ticket.of(ticket_id, record)

    def waiting(self) -> list[Ticket]:
        """Those without a place."""
        return [each for each in self.tickets().values() if not each.granted_ms]

    def count_waiting(self) -> int:
        """How many wait for a place."""
        orders = [key for key in self._keys if ":order:" in key]
        return sum(self._client.zcard(key) - 1 for key in orders if self._client.exists(key))

    def sent(self, ticket_id: str) -> Ticket:
        """What the store had of it when it was granted, the first time. Fails where that was told
        by no message: it did not wait."""
        return next(each for each in self.seen if each.id == ticket_id)

    def sent_before(self, ticket_id: str) -> list[Ticket]:
        """What was granted between its asking and its own grant, by the store's time and in the
        store's order."""
        asked = self.sent(ticket_id)
        before = self.seen[: self.seen.index(asked)]
        return [each for each in before if each.granted_ms > asked.entered_ms]

    def left_behind(self) -> list[str]:
        """Whatever is still in any key of the pool on behalf of a request. A tenant's counter,
        where it is kept for later, is on nobody's."""
        found: list[str] = []
        for key in self._keys:
            if ":idle:" in key:
                continue
            is_hash = key.endswith((":tickets", ":tenants"))
            there = self._client.hkeys(key) if is_hash else self._client.zrange(key, 0, -1)
            found += [f"{key} {name!r}" for name in there if name not in _TELLS_NOTHING]
        return found
