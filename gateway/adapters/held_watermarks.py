"""A journal's watermarks as Postgres holds them, looked at again where nothing fails: a server that
was restored to an older state behind a pooler, or in place, breaks no connection that tells."""

import asyncio
import time
from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.journal_watermarks import Watermark, load_watermarks
from billing.postgres.shipments import WatermarkMoved

LOOK_INTERVAL_S = 10.0
TIMEOUT_S = 15.0


class HeldWatermarks:
    """Those of one gateway's boots. Every method raises what the driver raises."""

    def __init__(self, engine: AsyncEngine, gateway_id: str) -> None:
        self._engine = engine
        self._gateway_id = gateway_id
        self._look_at = 0.0

    async def load(self) -> dict[int, Watermark]:
        """As they are now."""
        async with asyncio.timeout(TIMEOUT_S), self._engine.connect() as db:
            found = await load_watermarks(db, self._gateway_id)
        self._look_at = time.monotonic() + LOOK_INTERVAL_S
        return found

    async def check(self, known: Mapping[int, Watermark], *, at_once: bool = False) -> None:
        """Raise WatermarkMoved where Postgres holds others than `known`; looked at each 10 s or, as
        before something is deleted that only it may have, at once. Nothing may be under way."""
        if (at_once or time.monotonic() >= self._look_at) and await self.load() != known:
            raise WatermarkMoved
