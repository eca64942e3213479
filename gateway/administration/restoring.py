"""After a restore of Postgres: what was lost is confirmed, and what Redis still knows of keys and
tenants that were withdrawn is written again."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sqlalchemy.exc import ProgrammingError

from billing.postgres.lost_prices import put_back
from gateway.adapters.revocations import Revocation
from gateway.administration.store import Store, verb
from gateway.domain.tenant import ApiKey, Tenant
from gateway.errors import Conflict, NotFound, WeirError

ACTOR = "weir:restore"
"""As the audit log names who writes a revocation again that a backup has lost."""
PERIOD_S = 5.0
logger = logging.getLogger(__name__)


class RestoreVerbs(Store):
    """What people say after a restore."""

    @verb
    async def confirm_restore(self, actor: str, lost: Mapping[str, object]) -> None:
        """Write down that somebody knows which changes are lost, and has made them again."""
        async with self._changing(actor) as change:
            await change.audit("restore.confirm", "database", "postgres", before=None, after=lost)

    @verb
    async def put_prices_back(
        self, actor: str, lost: Mapping[str, Mapping[int, str]]
    ) -> dict[str, list[int]]:
        """Write prices and plans again that a backup has lost, by table and id, as they were;
        returns which were not there. Raises Conflict where the user of the database may not."""
        written: dict[str, list[int]] = {}
        async with self._changing(actor) as change:
            try:
                for table, rows in lost.items():
                    written[table] = await put_back(
                        change.db, table, [row for _, row in sorted(rows.items())]
                    )
            except ProgrammingError as error:
                raise Conflict("only the owner of the tables may put prices back") from error
            if any(written.values()):
                await change.audit(
                    "restore.prices", "database", "postgres", before=None, after=written
                )
        return written


class Withdrawing(Protocol):
    """The two verbs that are done again."""

    async def revoke_key(self, actor: str, key_id: str) -> ApiKey: ...

    async def update_tenant(
        self, actor: str, tenant_id: str, *, suspended: bool | None = None
    ) -> Tenant: ...


class RevokedAgain:
    """Writes revocations that Redis knows and Postgres does not, since it was restored from a
    backup: in Redis they end after some days, and the key would be good again.

    `unwritten` names those that are newer than their rows, as this gateway's directory sees it now
    (None: it does not). A revocation is in Postgres before it is in Redis: what is so in two looks
    is no delay.
    """

    def __init__(
        self,
        administration: Withdrawing,
        unwritten: Callable[[], Sequence[Revocation] | None],
        *,
        period_s: float = PERIOD_S,
    ) -> None:
        self._administration = administration
        self._unwritten = unwritten
        self._period_s = period_s
        self._seen: frozenset[Revocation] = frozenset()

    async def run(self) -> None:
        """Look each period, for ever; what cannot be written is tried again."""
        while True:
            await asyncio.sleep(self._period_s)
            try:
                await self.look()
            except WeirError as error:
                logger.warning("revocations are not written again now (%s)", error.code)
            except Exception:
                logger.exception("revocations are not written again: unexpected failure")

    async def look(self) -> None:
        """Write what is unwritten for the second time. Raises StoreUnavailable."""
        now = frozenset(self._unwritten() or ())
        again, self._seen = now & self._seen, now
        for revocation in sorted(again, key=lambda each: each.changed):
            try:
                await self._write(revocation)
            except NotFound:
                continue
            logger.error("%s %s is withdrawn again", revocation.kind, revocation.subject_id)

    async def _write(self, revocation: Revocation) -> None:
        if revocation.kind == "key":
            await self._administration.revoke_key(ACTOR, revocation.subject_id)
        else:
            await self._administration.update_tenant(ACTOR, revocation.subject_id, suspended=True)
