"""Wrong passwords, counted: ten in a row lock an account for a quarter of an hour.

Each is one UPDATE, so that many at once, on several replicas, count each once. A failed log-in
costs the same whoever it names: the same statements, none of which waits for a disk.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Update, and_, case, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.directory_rows import USER_COLUMNS, user_from
from gateway.adapters.tables import app_user
from gateway.administration.accounts import has_email, not_locked
from gateway.administration.checks import check_email
from gateway.administration.passwords import check_against
from gateway.administration.store import Store, verb
from gateway.domain.account import User
from gateway.domain.instants import instant_of
from gateway.errors import Unprocessable

FAILURES_MAX = 10
LOCKED_MS = 15 * 60_000
ACTOR = "weir"
"""Who locks: whoever tries passwords is nobody yet."""
NOBODYS_ID = ""

_ACCOUNT_COLUMNS = (*USER_COLUMNS, app_user.c.password_hash, app_user.c.password_changed_at)
_next_failure = case((app_user.c.locked_until.is_(None), app_user.c.failed_logins + 1), else_=1)
"""How many wrong passwords in a row there are with this one; a lock that is past begins anew."""
_NO_WAIT_FOR_DISK = text("SET LOCAL synchronous_commit = off")
"""A count that is lost where the server crashes is a guess more; and its wait would tell which
addresses there are."""


@dataclass(frozen=True)
class Account:
    """A user as they were when a password began to be checked."""

    user: User
    password_hash: str
    password_changed_at: datetime | None

    def takes_passwords(self, now_ms: int) -> bool:
        """Whether a right one helps: neither disabled nor locked."""
        locked_until_ms = self.user.locked_until_ms
        return not self.user.disabled and (locked_until_ms is None or locked_until_ms <= now_ms)

    def is_as_it_was(self) -> ColumnElement[bool]:
        """Whether the row is the user's, not disabled, and with that password still."""
        return and_(
            app_user.c.id == self.user.id,
            app_user.c.disabled_at.is_(None),
            app_user.c.password_changed_at.is_not_distinct_from(self.password_changed_at),
        )


class LoginVerbs(Store):
    """Looking up who a password would be of, and counting where it is not."""

    @verb
    async def _account(self, email: str) -> Account | None:
        try:
            email = check_email(email)
        except Unprocessable:
            email = NOBODYS_ID  # no user's address, and asked for all the same
        query = select(*_ACCOUNT_COLUMNS).where(has_email(email))
        async with self._reading() as db:
            row = (await db.execute(query)).one_or_none()
        if row is None:
            return None
        return Account(user_from(row), row.password_hash, row.password_changed_at)

    async def _checked(self, email: str, password: str) -> tuple[Account, str | None] | None:
        """The account whose password this is, and a new hash of it where the stored one is out of
        date. None, after the same time, where the address is unknown, the password wrong, or the
        account locked or disabled; a wrong password is counted. Raises Overloaded."""
        account = await self._account(email)
        verdict = await check_against(None if account is None else account.password_hash, password)
        if account is None or not verdict.right or not account.takes_passwords(self._now_ms()):
            await self._count_failure(account)
            return None
        return account, verdict.new_hash

    async def _count_failure(self, account: Account | None) -> None:
        """Count a wrong password; the tenth in a row locks, and says so in the audit log. While
        the account is locked or disabled nothing is counted."""
        user_id = NOBODYS_ID if account is None else account.user.id
        if await self._count_unless_last(user_id) or account is None:
            return
        await self._count_last(account.user)

    @verb
    async def _count_unless_last(self, user_id: str) -> bool:
        """Whether that is all there is to do: it was counted, or the account takes no password."""
        now = instant_of(self._now_ms())
        async with self._engine.begin() as db:
            await db.execute(_NO_WAIT_FOR_DISK)
            counted = await db.execute(
                _counting(user_id, now)
                .where(_next_failure < FAILURES_MAX)
                .values(failed_logins=_next_failure, locked_until=None)
                .returning(app_user.c.id)
            )
            return counted.first() is not None or not await _takes_passwords(db, user_id, now)

    @verb
    async def _count_last(self, user: User) -> None:
        """The lock, behind the directory's: an entry of the audit log goes with it."""
        now_ms = self._now_ms()
        until_ms = now_ms + LOCKED_MS
        locks = _next_failure >= FAILURES_MAX
        async with self._changing(ACTOR) as change:
            rows = await change.db.execute(
                _counting(user.id, instant_of(now_ms))
                .values(
                    failed_logins=_next_failure,
                    locked_until=case((locks, instant_of(until_ms)), else_=None),
                )
                .returning(app_user.c.failed_logins, app_user.c.locked_until)
            )
            row = rows.one_or_none()
            if row is not None and row.locked_until is not None:
                after = {"failed_logins": row.failed_logins, "locked_until_ms": until_ms}
                await change.audit("user.lock", "user", user.id, before=None, after=after)


def _counting(user_id: str, now: datetime | None) -> Update:
    return update(app_user).where(
        app_user.c.id == user_id, app_user.c.disabled_at.is_(None), not_locked(now)
    )


async def _takes_passwords(db: AsyncConnection, user_id: str, now: datetime | None) -> bool:
    found = await db.execute(
        select(func.count())
        .select_from(app_user)
        .where(app_user.c.id == user_id, app_user.c.disabled_at.is_(None), not_locked(now))
    )
    return found.scalar_one() > 0
