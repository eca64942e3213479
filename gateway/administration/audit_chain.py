"""The chain of the audit log, checked: read in batches, so that its length costs no memory."""

import asyncio
import re
from dataclasses import dataclass

import msgspec
from sqlalchemy import select

from gateway.adapters.tables import audit_log
from gateway.administration.audit_rows import CHAINED_COLUMNS, chained_from
from gateway.administration.store import Store, verb
from gateway.administration.views import View
from gateway.domain.audit_chain import NO_HASH, ChainedEntry, Head, first_misfit
from gateway.errors import Unprocessable

BATCH = 250
"""Entries read at once: a few milliseconds, beside requests that are served."""
ID_MAX = 2**63 - 1
HEAD = re.compile(r"(?P<id>[0-9]{1,18}):(?P<hash>[0-9a-f]{64})")


@dataclass(frozen=True)
class Misfit:
    """The first entry that does not fit, and why."""

    id: int
    why: str


@dataclass(frozen=True)
class ChainReport:
    """What a look at the chain found. `head` is the last entry that was checked, to be written down
    where nobody who can change the database can change it; None where there was none."""

    checked: int
    head: Head | None
    misfit: Misfit | None
    next_id: int | None
    """From which entry on to go on; None at the end, and where one does not fit."""


def head_from(text: str) -> Head:
    """An entry and its hash as `<id>:<hash>`. Raises Unprocessable."""
    found = HEAD.fullmatch(text)
    if found is None:
        raise Unprocessable("expect: must be an id, a colon and 64 hex digits", param="expect")
    return Head(int(found["id"]), found["hash"])


def chain_view(report: ChainReport) -> View:
    """What a look found."""
    return {"fits": report.misfit is None, **msgspec.to_builtins(report)}


class ChainVerbs(Store):
    """Checking the chain. The database's own functions are not asked."""

    async def verify_audit(
        self,
        from_id: int | None = None,
        *,
        expect: Head | None = None,
        entries_max: int | None = None,
    ) -> ChainReport:
        """Check every entry, from the one of `from_id` on (the one before it is believed), at most
        `entries_max`. `expect` is a head that was written down: where its entry is gone or another
        now, that does not fit. Each batch has a deadline of its own. Raises Unprocessable
        where there is no entry `from_id`."""
        before = None if from_id is None else await self._head_before(from_id)
        previous = NO_HASH if before is None else before.hash
        after_id = 0 if from_id is None else from_id - 1
        checked, head, left = 0, None, entries_max
        while left is None or left > 0:
            wanted = BATCH if left is None else min(BATCH, left)
            batch = await self._batch(after_id, wanted)
            wrong = await asyncio.to_thread(first_misfit, previous, batch)
            if wrong is not None:
                why = "it, or what stood before it, is not what was written"
                return ChainReport(checked, head, Misfit(wrong.id, why), None)
            checked += len(batch)
            left = None if left is None else left - len(batch)
            if batch:
                after_id, previous = batch[-1].id, batch[-1].hash
                head = Head(after_id, previous)
            if len(batch) < wanted:
                return ChainReport(checked, head, await self._missing(expect), None)
        rest = await self._batch(after_id, 1)
        misfit = await self._missing(expect)
        next_id = rest[0].id if rest and misfit is None else None
        return ChainReport(checked, head, misfit, next_id)

    async def _missing(self, expect: Head | None) -> Misfit | None:
        if expect is None:
            return None
        found = await self._hash_of(expect.id)
        if found == expect.hash:
            return None
        why = "it is gone" if found is None else "it is another than the one expected"
        return Misfit(expect.id, why)

    @verb
    async def _batch(self, after_id: int, wanted: int) -> list[ChainedEntry]:
        query = (
            select(*CHAINED_COLUMNS)
            .where(audit_log.c.id > after_id)
            .order_by(audit_log.c.id)
            .limit(wanted)
        )
        async with self._reading() as db:
            return [chained_from(row) for row in await db.execute(query)]

    @verb
    async def _hash_of(self, entry_id: int) -> str | None:
        async with self._reading() as db:
            found = await db.scalar(select(audit_log.c.hash).where(audit_log.c.id == entry_id))
        return None if found is None else bytes(found).hex()

    @verb
    async def _head_before(self, entry_id: int) -> Head | None:
        """The entry before that one; None before the first."""
        query = (
            select(audit_log.c.id, audit_log.c.hash)
            .where(audit_log.c.id <= min(entry_id, ID_MAX))
            .order_by(audit_log.c.id.desc())
            .limit(2)
        )
        async with self._reading() as db:
            rows = (await db.execute(query)).all()
        if not rows or rows[0].id != entry_id:
            raise Unprocessable(f"from_id: there is no entry {entry_id}", param="from_id")
        return Head(rows[1].id, bytes(rows[1].hash).hex()) if len(rows) > 1 else None
