"""The directory in a gateway's memory, a fraction of a second behind Postgres.

Everything is loaded at the start. Then one small query asks for the highest `changed`; what is
above the last seen is fetched. Writers commit in the order of `changed`, so nothing is skipped.
While Postgres is away lookups go on from memory, and revocations still come through Redis. After
any failed look everything is loaded again: what answers next may be an older backup. A process that
stood still (it was stopped, or its machine slept) believes nothing until it has looked again.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable

from asyncpg import PostgresError
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.price_book import PriceBook
from gateway.adapters.directory_content import DirectoryChange, DirectoryContent
from gateway.adapters.directory_queries import changed_rows, newest_change
from gateway.adapters.price_news import read_price_news
from gateway.adapters.redis import RedisClient
from gateway.adapters.revocations import (
    CLOCK_SKEW_MS,
    KEPT_MS,
    REVOKED_KEPT_MS,
    Revocation,
    read_revocations,
)
from gateway.adapters.standstill import Standstill
from gateway.domain.confirmation import Applied
from gateway.domain.hosted import HostedProvider
from gateway.domain.price_news import LEAD_MS, PriceNews
from gateway.domain.tenant import ApiKey, Model, Tenant, Worker
from gateway.errors import StoreUnavailable

POLL_TIMEOUT_S = 2.0
LOAD_TIMEOUT_S = 60.0
LOOKED_JUST_NOW_MS = 1_000
WAKE_S = 1.0
"""How long a request waits for a store after a standstill."""

logger = logging.getLogger(__name__)


class CachedDirectory:
    """serving.ports.Directory over Postgres, with Redis for revocations and news of prices where
    there is one.

    Callbacks in `on_change` are called in the event loop with what changed, the first load
    included; they must be quick and are expected not to raise.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        redis: RedisClient | None = None,
        poll_ms: int = 250,
        revocation_poll_ms: int = 500,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.on_change: list[Callable[[DirectoryChange], None]] = []
        self.moved = asyncio.Event()
        """Set when `applied` has changed; its one listener clears it."""
        self._engine = engine
        self._redis = redis
        self._poll_s = poll_ms / 1000
        self._revocation_poll_s = revocation_poll_ms / 1000
        self._now_ms = now_ms
        self._content = DirectoryContent()
        self._seen = 0
        self._whole = False
        self._looked_at = -float("inf")
        self._revocations_looked_at = -float("inf")
        self._revocations_seen_ms = 0
        self._price_news = PriceNews()
        self._price_news_looked_at = -float("inf")
        self._standstill = Standstill()
        self._next_look = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Load everything, then keep following. Raises StoreUnavailable where Postgres is away."""
        try:
            await self.refresh()
        except (OSError, TimeoutError, PostgresError, SQLAlchemyError) as error:
            raise StoreUnavailable(
                f"the directory cannot be read from Postgres: {type(error).__name__}"
            ) from error
        self._tasks.append(asyncio.create_task(self._standstill.run()))
        self._tasks.append(asyncio.create_task(self._follow_postgres()))
        if self._redis is not None:
            await self._look_at_redis(self._redis)
            self._tasks.append(asyncio.create_task(self._follow_redis(self._redis)))

    async def stop(self) -> None:
        """Stop following; lookups go on answering from memory."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def refresh(self) -> None:
        """Look at Postgres now. Raises what the driver raises where it cannot be read."""
        began, seen = self._begin_look(), self._seen
        async with asyncio.timeout(POLL_TIMEOUT_S if self._whole else LOAD_TIMEOUT_S):
            async with self._engine.connect() as db:
                newest = await newest_change(db)
                if newest < self._seen:
                    # Numbers only grow: this is an earlier state than the one in memory.
                    self._whole = False
                if not self._whole:
                    change = await self._load(db, newest)
                elif newest > self._seen:
                    change = await self._catch_up(db, newest)
                else:
                    change = DirectoryChange()
        self._looked_at = began
        self._has_looked()
        self._price_news.read(seen=self._seen, began_s=began)
        if not change.is_empty:
            self._announce(change)
        if self._seen != seen:
            self.moved.set()

    def key_by_digest(self, digest: bytes) -> ApiKey | None:
        """The key whose secret has this SHA-256 digest, also when revoked or expired."""
        return self._content.key_by_digest(digest)

    def tenant(self, tenant_id: str) -> Tenant | None:
        """The tenant of that id, suspended or not."""
        return self._content.tenants.get(tenant_id)

    def model(self, model_id: str) -> Model | None:
        """The model of that id."""
        return self._content.models.get(model_id)

    def models(self) -> list[Model]:
        """All models."""
        return list(self._content.models.values())

    def workers(self, model_id: str | None = None) -> list[Worker]:
        """Workers of one model, or all; draining ones too."""
        workers = self._content.workers.values()
        return [worker for worker in workers if model_id is None or worker.model == model_id]

    def hosted_providers(self) -> list[HostedProvider]:
        """All hosted providers, disabled ones too."""
        return list(self._content.providers.values())

    def price_book(self) -> PriceBook:
        """Every list price, those that begin later too."""
        return self._content.price_book

    def knows_prices_at(self, at_ms: int) -> bool:
        """Whether the price book has every price that holds for a request that arrived then."""
        looked_ms = self._now_ms() - _ms_since(max(self._looked_at, self._price_news_looked_at))
        return at_ms < looked_ms + LEAD_MS and not self._price_news.has_begun(at_ms)

    @property
    def age_ms(self) -> int:
        """Since the last successful look at Postgres."""
        return _ms_since(self._looked_at)

    @property
    def revocations_age_ms(self) -> int:
        """Since revocations were last seen, in either store; without end where the process has
        stood still since."""
        seen_at = max(self._looked_at, self._revocations_looked_at)
        return _ms_since(seen_at if self._is_awake else -float("inf"))

    async def waken(self) -> None:
        """Return at once, or after a standstill once a store was looked at anew; where none answers
        within 1 s, then, and `revocations_age_ms` says so."""
        if self._is_awake:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAKE_S):
                while not self._is_awake:
                    await self._next_look.wait()

    @property
    def applied(self) -> Applied:
        """Which changes lookups go by."""
        return Applied(self._seen, self._content.revoked_beyond(self._seen))

    def unwritten_revocations(self) -> list[Revocation] | None:
        """Revocations from Redis that Postgres does not have, None where it was not looked at just
        now."""
        if self.age_ms > LOOKED_JUST_NOW_MS:
            return None
        return self._content.unwritten_revocations()

    @property
    def _is_awake(self) -> bool:
        return max(self._looked_at, self._revocations_looked_at) >= self._standstill.woke_at

    def _begin_look(self) -> float:
        # Ticked first: a look that begins before the process has noticed its standstill would be
        # taken for one from before it.
        self._standstill.tick()
        return time.monotonic()

    def _has_looked(self) -> None:
        self._next_look.set()
        self._next_look = asyncio.Event()

    async def _load(self, db: AsyncConnection, newest: int) -> DirectoryChange:
        """Read everything beside what is in memory, and put it in its place at once."""
        content, change = DirectoryContent(self._content), DirectoryChange(whole=True)
        async for rows in changed_rows(db, after=0, newest=newest):
            change.take(content.update(rows))
        content.apply_known_revocations()
        self._content, self._seen, self._whole = content, newest, True
        return change

    async def _catch_up(self, db: AsyncConnection, newest: int) -> DirectoryChange:
        change = DirectoryChange()
        async for rows in changed_rows(db, after=self._seen, newest=newest):
            change.take(self._content.update(rows))
        self._seen = newest
        return change

    def _announce(self, change: DirectoryChange) -> None:
        for callback in self.on_change:
            try:
                callback(change)
            except Exception:
                # A listener's bug must not stop revocations from being followed: it is logged.
                logger.exception("a listener of the directory failed")

    async def _follow_postgres(self) -> None:
        away = False
        while True:
            await asyncio.sleep(self._poll_s * random.uniform(0.8, 1.0))  # noqa: S311 - jitter
            try:
                await self.refresh()
            except (OSError, TimeoutError, PostgresError, SQLAlchemyError) as error:
                self._whole = False
                if not away:
                    logger.warning("directory: Postgres is away: %s", type(error).__name__)
                away = True
            else:
                if away:
                    logger.info("directory: Postgres is back")
                away = False

    async def _follow_redis(self, redis: RedisClient) -> None:
        away = False
        while True:
            await asyncio.sleep(self._revocation_poll_s * random.uniform(0.8, 1.0))  # noqa: S311
            reached = await self._look_at_redis(redis)
            if not reached and not away:
                logger.warning("directory: Redis is away, revocations come from Postgres alone")
            away = not reached

    async def _look_at_redis(self, redis: RedisClient) -> bool:
        try:
            await self._look_at_revocations(redis)
            await self._look_at_price_news(redis)
        except (OSError, TimeoutError, RedisError):
            return False
        return True

    async def _look_at_price_news(self, redis: RedisClient) -> None:
        began = time.monotonic()
        news = await read_price_news(redis, since_ms=self._now_ms() - KEPT_MS)
        self._price_news.hear(news, seen=self._seen, at_s=time.monotonic())
        self._price_news_looked_at = began

    async def _look_at_revocations(self, redis: RedisClient) -> None:
        began = self._begin_look()
        now_ms = self._now_ms()
        since_ms = max(self._revocations_seen_ms - CLOCK_SKEW_MS, now_ms - REVOKED_KEPT_MS)
        revocations = await read_revocations(redis, since_ms=since_ms)
        change = self._content.revoke(revocations, forget_before_ms=now_ms - REVOKED_KEPT_MS)
        self._revocations_looked_at = began
        self._has_looked()
        self._revocations_seen_ms = max(
            [self._revocations_seen_ms, *(revocation.at_ms for revocation in revocations)]
        )
        if not change.is_empty:
            self._announce(change)
        if any(revocation.changed > self._seen for revocation in revocations):
            self.moved.set()


def _ms_since(instant: float) -> int:
    elapsed_ms = (time.monotonic() - instant) * 1000
    return int(min(elapsed_ms, 2**53))
