"""Usage that is as complete as a test says."""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.completeness import Found, UsageCompleteness
from gateway.adapters.presence import Gateways
from gateway.adapters.redis import connect_redis
from gateway.domain.completeness import Completeness


class Told(UsageCompleteness):
    """As complete as a test says: by itself, up to 400 ms before `now`."""

    def __init__(self, postgres: AsyncEngine, now: datetime) -> None:
        redis = connect_redis("redis://127.0.0.1:1", timeout_ms=100)
        super().__init__(Gateways(redis, _Never()), postgres)
        self.now_ms = int(now.timestamp() * 1000)
        self.found = Found(Completeness(self.now_ms - 400, self.now_ms), 0)

    async def look(self) -> Found:
        """That."""
        return self.found


class _Never:
    async def born_ms(self, tenant_id: str) -> int:
        """Nothing was lost."""
        return 0
