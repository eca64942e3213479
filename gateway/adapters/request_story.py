"""Single requests, read for people: of those that have ended from Postgres, of those that have not,
or whose record is still on its way, from the second copies in Redis."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import asyncpg
from msgspec.structs import replace
from sqlalchemy import select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.usage_record import UsageRecord
from billing.postgres.request_life import EndedRequest, find_request
from billing.postgres.request_list import RequestFilter, RequestPage, list_requests
from gateway.adapters.presence import Census, Gateways
from gateway.adapters.second_copy_records import Copies
from gateway.adapters.tables import api_key
from gateway.domain.lease import Admitted
from gateway.domain.presence import GONE_MS
from gateway.errors import StoreUnavailable
from gateway.serving.ports import LedgerUnavailable

STATEMENT_TIMEOUT_MS = 2_000
WAIT_S = 5.0
_AWAY = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


@dataclass(frozen=True)
class Underway:
    """A request that Postgres does not have yet, as its gateway has told the store: its end, or its
    admission with the tokens so far."""

    gateway_id: str
    body: Admitted | UsageRecord
    prompt_tokens: int
    output_tokens: int
    gateway_is_gone: bool
    """Whether its gateway was not seen for a minute."""

    @property
    def tenant_id(self) -> str:
        """Whose it is."""
        return self.body.tenant_id


class RequestStories:
    """Reads requests, two at once. `postgres` has POOL_SIZE connections for it, on which nothing is
    served. Every method raises StoreUnavailable."""

    POOL_SIZE = 2

    def __init__(
        self, postgres: AsyncEngine, gateways: Gateways | None, copies: Copies | None
    ) -> None:
        """Without gateways and their copies only what has ended is found."""
        self._postgres = postgres
        self._gateways = gateways
        self._copies = copies
        self._turns = asyncio.Semaphore(self.POOL_SIZE)

    async def page(
        self, chosen: RequestFilter, *, limit: int, cursor: str | None = None
    ) -> RequestPage:
        """Requests that have ended, newest first. Raises InvalidCursor."""
        async with self._reading() as db:
            if chosen.api_key_id is not None and chosen.tenant_id is None:
                # A key's requests are its tenant's, which an index has.
                owner = select(api_key.c.tenant_id).where(api_key.c.id == chosen.api_key_id)
                chosen = replace(chosen, tenant_id=await db.scalar(owner))
            return await list_requests(db, chosen, limit=limit, cursor=cursor)

    async def find(self, request_id: UUID) -> EndedRequest | Underway | None:
        """A request, whether it has ended or not; None where nobody knows of it."""
        ended = await self._ended(request_id)
        if ended is not None:
            return ended
        try:
            underway = await self._underway(request_id)
        except LedgerUnavailable as error:
            raise StoreUnavailable(
                "no such request has ended, and what runs cannot be seen while Redis is away"
            ) from error
        # It may have come to Postgres, and its copy been removed, between the two looks.
        return underway or await self._ended(request_id)

    async def _ended(self, request_id: UUID) -> EndedRequest | None:
        async with self._reading() as db:
            return await find_request(db, request_id)

    async def _underway(self, request_id: UUID) -> Underway | None:
        if self._gateways is None:
            return None
        census = await self._gateways.census()
        looks = [self._copy(census, name, request_id) for name in census.standings]
        found = [each for each in await asyncio.gather(*looks) if each is not None]
        # An end says more than an admission, should two gateways have told of it.
        found.sort(key=lambda each: isinstance(each.body, UsageRecord), reverse=True)
        return found[0] if found else None

    async def _copy(self, census: Census, gateway_id: str, request_id: UUID) -> Underway | None:
        copies = () if self._copies is None else await self._copies.some(gateway_id, [request_id])
        for copy in copies:
            seen_ms = census.standings[gateway_id].seen_ms
            return Underway(
                gateway_id,
                copy.body,
                copy.prompt_tokens,
                copy.output_tokens,
                gateway_is_gone=census.now_ms - seen_ms >= GONE_MS,
            )
        return None

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with asyncio.timeout(WAIT_S):
                await self._turns.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("others are asking for requests: try again") from error
        try:
            async with self._postgres.connect() as db:
                await db.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}"))
                yield db
        except _AWAY as error:
            raise StoreUnavailable("requests cannot be read at the moment") from error
        finally:
            self._turns.release()
