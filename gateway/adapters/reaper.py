"""Looks after gateways that are gone: what their second copies know becomes provisional rows, and
what is left of them in Redis goes once nobody needs it.

Every gateway has a reaper and one works at a time, by turns. A turn is advice: any number that work
at once write the same rows, and whoever is interrupted leaves the rest to the next.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from uuid import uuid4

from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.usage_record import UsageRecord
from billing.postgres.gateways_seen import (
    Seen,
    close_gateway,
    forget_seen,
    load_expected,
    note_seen,
)
from billing.postgres.journal_watermarks import load_watermarks
from billing.postgres.provisional import (
    FINALISED_AT_ONCE,
    STRUCK_AT_ONCE,
    count_provisional,
    finalise,
    strike_replaced,
    write_provisional,
)
from gateway.adapters.presence import Census, Gateways
from gateway.adapters.repeating import AWAY as POSTGRES_AWAY
from gateway.adapters.second_copy_records import Copies, Copy
from gateway.domain.orphans import (
    END_UNKNOWN,
    FINAL_MS,
    Orphan,
    is_provisional_end,
    lost_record,
    may_be_forgotten,
    may_judge,
    orphans,
    provisional,
)
from gateway.domain.presence import GONE_MS, Heartbeat, Standing
from gateway.serving.month_ports import Turns
from gateway.serving.ports import LedgerUnavailable
from gateway.telemetry import metrics

PERIOD_S = 5.0
TIDY_S = 60.0
AGAIN_S = 3_600.0
"""Copies that have not changed are written again after so long: Postgres may have been restored to
an older state meanwhile."""
ROWS = 500
STORE_TIMEOUT_S = 15.0
TURN = ("gateways", "reap")
"""The turn's tag and name."""
AWAY = (LedgerUnavailable, *POSTGRES_AWAY)
logger = logging.getLogger(__name__)


class Reaper:
    """One gateway's. `own` is its own journal's id, which it never reaps.

    `rate` adds to a record what its tokens would have cost, `on_ends` is told of ends that may not
    have been settled, once Postgres has them: settling again changes nothing. A gateway is gone
    that the store has not seen for `gone_after_ms`; a provisional row is final after
    `final_after_ms`.
    """

    def __init__(
        self,
        gateways: Gateways,
        copies: Copies,
        engine: AsyncEngine,
        turns: Turns,
        *,
        own: str,
        rate: Callable[[UsageRecord], UsageRecord],
        on_ends: Callable[[list[UsageRecord]], None],
        gone_after_ms: int = GONE_MS,
        final_after_ms: int = FINAL_MS,
        period_s: float = PERIOD_S,
        tidy_s: float = TIDY_S,
    ) -> None:
        self._gateways = gateways
        self._copies = copies
        self._engine = engine
        self._turns = turns
        self._holder = uuid4().hex
        self._own = own
        self._rate = rate
        self._on_ends = on_ends
        self._gone_after_ms = gone_after_ms
        self._final_after_ms = final_after_ms
        self._period_s = period_s
        self._tidy_s = tidy_s
        self._tidy_at = 0.0
        self._looked_ms: int | None = None
        self._reaped: dict[str, _Reaped] = {}
        self._failing = False
        self.gone = 0
        """Gateways that are gone and of which something is expected, as this one last saw."""
        self.written = 0
        """Provisional rows that this gateway had to write, since it began."""

    async def run(self) -> None:
        """A turn each period, for ever; whatever fails is tried again."""
        while True:
            await asyncio.sleep(self._period_s)
            try:
                await self.turn()
                self._failing = False
            except AWAY as error:
                if not self._failing:
                    logger.warning("reaper: not now (%s)", type(error).__name__)
                self._failing = True
                self._looked_ms = None
            except Exception:
                logger.exception("reaper: unexpected failure")

    async def turn(self) -> None:
        """Look who is there and, where it is this gateway's turn, write that down, reap who is gone
        and now and then tidy up. Raises one of AWAY."""
        census = await self._gateways.census()
        looked_ms, self._looked_ms = self._looked_ms, census.now_ms
        if not await self._turns.claim(*TURN, self._holder):
            return
        async with asyncio.timeout(STORE_TIMEOUT_S), self._engine.begin() as connection:
            await note_seen(connection, _seen(census.standings))
            expected = await load_expected(connection)
        period_ms = int(self._period_s * 1000)
        if not census.is_whole or not may_judge(
            looked_ms=looked_ms, now_ms=census.now_ms, period_ms=period_ms
        ):
            return
        gone = self._gone(census, expected)
        for orphan in gone:
            await self.reap(orphan)
        if time.monotonic() >= self._tidy_at:
            await self.tidy(gone)
            self._tidy_at = time.monotonic() + self._tidy_s

    def _gone(self, census: Census, expected: list[Seen]) -> list[Orphan]:
        """Those whom the store knows, and those whom only Postgres remembers."""
        known = {each.gateway_id: _standing(each) for each in expected} | census.standings
        gone = orphans(
            known, own=self._own, now_ms=census.now_ms, gone_after_ms=self._gone_after_ms
        )
        names = {orphan.gateway_id for orphan in gone}
        self._reaped = {name: each for name, each in self._reaped.items() if name in names}
        self.gone = len(gone)
        return gone

    async def reap(self, orphan: Orphan) -> None:
        """Have a row for each copy of a gateway that is gone. Raises one of AWAY."""
        gateway_id = orphan.gateway_id
        last_write = await self._copies.last_write(gateway_id)
        before = self._reaped.get(gateway_id)
        if before is not None and before.holds(last_write):
            return
        self._reaped.pop(gateway_id, None)
        copies: list[Copy] = []
        names = await self._copies.names(gateway_id)
        async for copy in self._copies.of(gateway_id):
            names.discard(copy.request_id)
            copies.append(copy)
            if len(copies) >= ROWS:
                await self._write(orphan, copies)
                copies = []
        await self._write(orphan, copies)
        self._reaped[gateway_id] = _Reaped(last_write, bool(names))

    async def _write(self, orphan: Orphan, copies: list[Copy]) -> None:
        if not copies:
            return
        records = [self._record(copy, orphan.standing.seen_ms) for copy in copies]
        ends = [record.request_id for record in records if is_provisional_end(record)]
        async with asyncio.timeout(STORE_TIMEOUT_S):
            written = await write_provisional(
                self._engine, orphan.gateway_id, records, ends=ends, unknown_end=END_UNKNOWN
            )
        if written:
            logger.warning("reaper: %d provisional rows of %s", written, orphan.gateway_id)
        self.written += written
        metrics.PROVISIONAL.inc(written)
        settled = [copy.body for copy in copies if isinstance(copy.body, UsageRecord)]
        if settled:
            self._on_ends(settled)

    def _record(self, copy: Copy, seen_ms: int) -> UsageRecord:
        """The same whoever makes it: a request that was running ended when its gateway was last
        seen."""
        if isinstance(copy.body, UsageRecord):
            return provisional(copy.body, has_ended=True)
        record = lost_record(
            copy.body,
            now_ms=max(copy.body.admitted_at_ms, seen_ms),
            prompt_tokens=copy.prompt_tokens,
            output_tokens=copy.output_tokens,
        )
        return provisional(self._rate(record), has_ended=False)

    async def tidy(self, gone: list[Orphan]) -> None:
        """Make final what was provisional for long enough, and forget those of whom nothing more is
        expected. Raises one of AWAY."""
        looked_at = FINALISED_AT_ONCE
        while looked_at == FINALISED_AT_ONCE:
            async with asyncio.timeout(STORE_TIMEOUT_S):
                looked_at = await finalise(self._engine, age_ms=self._final_after_ms)
        struck = STRUCK_AT_ONCE
        while struck == STRUCK_AT_ONCE:
            async with asyncio.timeout(STORE_TIMEOUT_S):
                struck = await strike_replaced(self._engine)
        for orphan in gone:
            reaped = self._reaped.get(orphan.gateway_id)
            if reaped is not None and not reaped.has_unreadable:
                await self._forget_if_done(orphan)
        async with asyncio.timeout(STORE_TIMEOUT_S), self._engine.begin() as connection:
            await forget_seen(connection)

    async def _forget_if_done(self, orphan: Orphan) -> None:
        gateway_id = orphan.gateway_id
        async with asyncio.timeout(STORE_TIMEOUT_S):
            provisional_rows = await count_provisional(self._engine, gateway_id)
            async with self._engine.begin() as connection:
                watermarks = await load_watermarks(connection, gateway_id)
                if not may_be_forgotten(
                    orphan,
                    {boot: watermark.seq for boot, watermark in watermarks.items()},
                    open_count=sum(
                        watermark.admitted_count - watermark.ended_count
                        for watermark in watermarks.values()
                    ),
                    provisional_rows=provisional_rows,
                    final_after_ms=self._final_after_ms,
                ):
                    return
        if await self._has_forgotten_rows(orphan):
            return
        async with asyncio.timeout(STORE_TIMEOUT_S), self._engine.begin() as connection:
            await close_gateway(connection, gateway_id)
        await self._gateways.forget(gateway_id)
        self._reaped.pop(gateway_id, None)
        logger.info("reaper: nothing more is expected of %s", gateway_id)

    async def _has_forgotten_rows(self, orphan: Orphan) -> bool:
        """Whether a copy had no row: Postgres was restored to a state from before they were
        written. They are now, and the copies stay until these are final."""
        self._reaped.pop(orphan.gateway_id, None)
        written = self.written
        await self.reap(orphan)
        return self.written > written

    async def stop(self) -> None:
        """Give the turn back: this gateway ends."""
        with contextlib.suppress(LedgerUnavailable):
            await self._turns.release(*TURN, self._holder)


class _Reaped:
    """What was made of a gateway's copies, as they were at a write to them."""

    def __init__(self, last_write: int | None, has_unreadable: bool) -> None:
        self._last_write = last_write
        self._until = time.monotonic() + AGAIN_S
        self.has_unreadable = has_unreadable
        """Copies of a release that this one does not understand: they are not to be removed."""

    def holds(self, last_write: int | None) -> bool:
        """Whether nothing was written to them since, and not long ago."""
        return self._last_write == last_write and time.monotonic() < self._until


def _seen(standings: Mapping[str, Standing]) -> list[Seen]:
    return [
        Seen(
            name,
            standing.journal.boot,
            standing.journal.durable_seq,
            standing.journal.shipped_seq,
            standing.journal.open_count,
            standing.seen_ms,
        )
        for name, standing in standings.items()
        if standing.journal is not None
    ]


def _standing(seen: Seen) -> Standing:
    journal = Heartbeat(seen.boot, seen.durable_seq, seen.open_count, seen.shipped_seq)
    return Standing(seen.seen_at_ms, 0, journal)
