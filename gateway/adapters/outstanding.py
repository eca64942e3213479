"""What in the usage tables waits for a person: dead letters, and rows that found no month."""

import time

from sqlalchemy.ext.asyncio import AsyncEngine

from billing.postgres.dead_letters import count_open
from billing.postgres.partitions import count_stray

LOOK_INTERVAL_S = 30.0


class Outstanding:
    """Looks at most every half minute, of all gateways' rows; each gateway sees the same."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._look_at = 0.0
        self.dead_letters = 0
        """Records that Postgres refused and that nobody has resolved."""
        self.stray_rows = 0
        """Records in the default partition, whose month had none; counted up to a bound."""

    def look_soon(self) -> None:
        """The next `look` looks, however short ago the last one was."""
        self._look_at = 0.0

    async def look(self) -> None:
        """Look where it is time to. Raises what the driver raises."""
        if time.monotonic() < self._look_at:
            return
        async with self._engine.connect() as db:
            self.dead_letters = await count_open(db)
            self.stray_rows = await count_stray(db)
        self._look_at = time.monotonic() + LOOK_INTERVAL_S
