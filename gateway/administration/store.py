"""How every administrative verb reaches Postgres: one transaction, one deadline, one audit row.

A write holds the directory's lock from before its first read until it has committed. So what it
read is still true when it writes, and gateways, which follow `changed`, see changes in the order
of their numbers and miss none.
"""

import asyncio
import functools
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from asyncpg import PostgresError
from sqlalchemy import Column, Row, Select, func, insert, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.adapters.redis import RedisClient
from gateway.adapters.revocations import Revocation, forget_revocations, publish_revocation
from gateway.adapters.tables import DIRECTORY_LOCK, audit_log
from gateway.administration.credentials import new_id
from gateway.administration.pages import Page, check_page_limit, page_of, position_of
from gateway.administration.store_errors import store_failure
from gateway.errors import StoreUnavailable

DEADLINE_S = 1.8

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Verbs = TypeVar("Verbs", bound="Store")


class Change:
    """A transaction that may write, on behalf of `actor`. Its entries of the audit log share an
    id of the change."""

    def __init__(self, db: AsyncConnection, actor: str) -> None:
        self.db = db
        self.actor = actor
        self.id = new_id("change")
        self._entries: list[dict[str, object]] = []

    async def audit(
        self,
        action: str,
        subject_kind: str,
        subject_id: str,
        *,
        before: Mapping[str, object] | None,
        after: Mapping[str, object] | None,
    ) -> None:
        """Write down what changes; it lasts only if the change does. Never pass a secret."""
        self._entries.append(
            {
                "actor": self.actor,
                "action": action,
                "subject_kind": subject_kind,
                "subject_id": subject_id,
                "change_id": self.id,
                "before": before,
                "after": after,
            }
        )

    async def write_entries(self) -> None:
        """Write the entries, for whoever commits next. The lock of the audit log's chain is so the
        last that a transaction takes, and held for no longer than a commit: nobody can wait for it
        in a circle, or for a month that is added up."""
        if self._entries:
            await self.db.execute(insert(audit_log), self._entries)
            self._entries = []


class Store:
    """What the verbs share. `redis` carries revocations and news of prices to gateways
    that Postgres does not answer."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        redis: RedisClient | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._engine = engine
        self._redis = redis
        self._now_ms = now_ms
        self._under_way: set[asyncio.Task[Any]] = set()
        # Weak: an entry serves whoever still holds the task, also after it has failed.
        self._committing: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        async with self._engine.connect() as db:
            yield db

    async def _page(
        self,
        query: Select[Any],
        by: Column[str],
        read: Callable[[Row[Any]], Result],
        limit: int,
        cursor: str | None,
    ) -> Page[Result]:
        """A page of what `query` finds, in the order of `by`, a column of unique values."""
        check_page_limit(limit)
        query = query.order_by(by).limit(limit + 1)
        if cursor is not None:
            query = query.where(by > position_of(cursor))
        async with self._reading() as db:
            rows = await db.execute(query)
        return page_of([(row._mapping[by], read(row)) for row in rows], limit)  # noqa: SLF001 - SQLAlchemy's public name

    @asynccontextmanager
    async def _changing(self, actor: str) -> AsyncIterator[Change]:
        async with self._engine.connect() as db:
            await db.execute(select(func.pg_advisory_xact_lock(DIRECTORY_LOCK)))
            change = Change(db, actor)
            yield change
            await change.write_entries()
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 - a coroutine always runs in a task
            self._committing.add(task)
            await db.commit()
            self._committing.discard(task)

    async def _publish(self, kind: str, subject_id: str, changed: int) -> None:
        if self._redis is not None:
            revocation = Revocation(kind, subject_id, changed, self._now_ms())
            await publish_revocation(self._redis, revocation)

    async def _unpublish(self, kind: str, subject_id: str) -> None:
        if self._redis is not None:
            await forget_revocations(self._redis, kind, subject_id)

    async def _bounded(self, begin: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Run a verb in a task of its own, which is left behind where it outlasts the deadline.

        Cancelling and waiting would not do: closing a connection to a server that has stopped
        answering takes seconds more.
        """
        task = asyncio.create_task(self._attempted(begin))
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        try:
            await asyncio.wait({task}, timeout=DEADLINE_S)
        except asyncio.CancelledError:
            task.cancel()
            raise
        committing = task in self._committing
        if not task.done():
            task.cancel()
            raise _too_late(committing)
        try:
            return task.result()
        except (OSError, TimeoutError, PostgresError, SQLAlchemyError) as error:
            raise store_failure(error, committing=committing) from error

    async def _attempted(self, begin: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Begin again once where a pooled connection turns out to be dead: Postgres was restarted,
        and what was lost with the connection had not been committed."""
        try:
            return await begin()
        except DBAPIError as error:
            if not error.connection_invalidated or asyncio.current_task() in self._committing:
                raise
        return await begin()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()


def verb(
    method: Callable[Concatenate[Verbs, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Verbs, Parameters], Coroutine[Any, Any, Result]]:
    """Bound a verb: within 2 s it has its result, or it raises StoreUnavailable."""

    @functools.wraps(method)
    async def bounded(
        self: Verbs, /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        return await self._bounded(lambda: method(self, *args, **kwargs))

    return bounded


def _too_late(committing: bool) -> StoreUnavailable:
    if committing:
        return StoreUnavailable(
            "Postgres did not confirm the change in time: look before you repeat it",
            code="outcome_unknown",
        )
    return StoreUnavailable("Postgres did not answer in time; nothing was changed")
