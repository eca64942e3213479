"""Sessions: begun with a password, known by a secret that a browser keeps in a cookie."""

from contextlib import suppress

from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.directory_rows import (
    SESSION_COLUMNS,
    USER_COLUMNS,
    session_from,
    user_from,
)
from gateway.adapters.tables import app_user, user_session
from gateway.administration.accounts import (
    SEEN_AFTER_MS,
    end_sessions,
    existing_user,
    is_live_session,
    not_locked,
)
from gateway.administration.credentials import digest_of, new_id, new_session_secret
from gateway.administration.logins import Account, LoginVerbs
from gateway.administration.store import verb
from gateway.domain.account import OpenSession, Session, User
from gateway.domain.instants import instant_of, ms_of
from gateway.domain.permissions import Caller, permissions_of
from gateway.errors import NotFound, StoreUnavailable, Unauthorized

SESSION_MAX_MS = 24 * 3_600_000
"""How long a session lasts at most."""
KEPT_MS = 30 * 24 * 3_600_000
"""How long a session is kept that has ended."""
REFUSED = "the e-mail address or the password is wrong, or the account is locked for a while"


_KNOWN_COLUMNS = (*USER_COLUMNS, user_session.c.seen_at)


class SessionVerbs(LoginVerbs):
    """The verbs on sessions."""

    async def log_in(self, email: str, password: str, *, address: str | None) -> Session:
        """Begin a session. Unauthorized, in the same words and after the same time, where the
        address is unknown, the password wrong, or the account locked or disabled; Overloaded where
        too many log in at once."""
        checked = await self._checked(email, password)
        session = None if checked is None else await self._begin(*checked, address)
        if session is None:
            raise Unauthorized(REFUSED)
        return session

    @verb
    async def _begin(
        self, account: Account, new_hash: str | None, address: str | None
    ) -> Session | None:
        """None where the account was locked, disabled or given another password meanwhile."""
        now_ms = self._now_ms()
        now, secret, session_id = instant_of(now_ms), new_session_secret(), new_id("session")
        values: dict[str, object] = {"failed_logins": 0, "locked_until": None, "last_login_at": now}
        if new_hash is not None:
            values["password_hash"] = new_hash
        async with self._changing(f"user:{account.user.email}") as change:
            row = (
                await change.db.execute(
                    update(app_user)
                    .where(account.is_as_it_was(), not_locked(now))
                    .values(**values)
                    .returning(*USER_COLUMNS)
                )
            ).one_or_none()
            if row is None:
                return None
            user = user_from(row)
            await change.db.execute(
                insert(user_session).values(
                    digest=digest_of(secret),
                    id=session_id,
                    user_id=user.id,
                    created_at=now,
                    seen_at=now,
                    expires_at=instant_of(now_ms + SESSION_MAX_MS),
                    address=address,
                )
            )
            await _forget_old(change.db, user.id, now_ms)
            after = {"session": session_id, "address": address}
            await change.audit("session.begin", "user", user.id, before=None, after=after)
        return Session(secret=secret, user=user, expires_at_ms=now_ms + SESSION_MAX_MS)

    async def caller_by_session(self, secret: str) -> Caller | None:
        """Who the live session belongs to; None where it is unknown, ended, idle for too long, or
        its user is disabled."""
        known = await self._known_session(secret)
        if known is None:
            return None
        user, seen_at_ms = known
        now_ms = self._now_ms()
        if seen_at_ms <= now_ms - SEEN_AFTER_MS:
            with suppress(StoreUnavailable):  # who reads goes on while nothing can be written
                await self._write_seen(secret, now_ms)
        return Caller(user=user, permissions=permissions_of(user.role), via="session")

    @verb
    async def _known_session(self, secret: str) -> tuple[User, int] | None:
        query = (
            select(*_KNOWN_COLUMNS)
            .join(user_session, user_session.c.user_id == app_user.c.id)
            .where(
                user_session.c.digest == digest_of(secret),
                is_live_session(self._now_ms()),
                app_user.c.disabled_at.is_(None),
            )
        )
        async with self._reading() as db:
            row = (await db.execute(query)).one_or_none()
        return None if row is None else (user_from(row), ms_of(row.seen_at) or 0)

    @verb
    async def _write_seen(self, secret: str, now_ms: int) -> None:
        due = user_session.c.seen_at <= instant_of(now_ms - SEEN_AFTER_MS)
        async with self._engine.begin() as db:
            await db.execute(
                update(user_session)
                .where(user_session.c.digest == digest_of(secret), due)
                .values(seen_at=instant_of(now_ms))
            )

    @verb
    async def log_out(self, secret: str) -> None:
        """End that session, if it is one."""
        async with self._engine.begin() as db:
            await db.execute(
                update(user_session)
                .where(
                    user_session.c.digest == digest_of(secret), user_session.c.ended_at.is_(None)
                )
                .values(ended_at=instant_of(self._now_ms()))
            )

    @verb
    async def log_out_everywhere(self, actor: str, email: str, *, keep: str | None = None) -> int:
        """End every session of a user but that with the secret `keep`; how many there were."""
        kept = None if keep is None else digest_of(keep)
        async with self._changing(actor) as change:
            user = await existing_user(change.db, email)
            ended = await end_sessions(change.db, user.id, now_ms=self._now_ms(), keep=kept)
            if ended:
                before = {"sessions": ended}
                await change.audit("session.end_all", "user", user.id, before=before, after=None)
        return ended

    @verb
    async def session_id(self, secret: str) -> str | None:
        """The id that the session with this secret is listed by."""
        async with self._reading() as db:
            found: str | None = await db.scalar(
                select(user_session.c.id).where(user_session.c.digest == digest_of(secret))
            )
        return found

    @verb
    async def list_sessions(self, email: str) -> list[OpenSession]:
        """A user's live sessions, the latest first."""
        async with self._reading() as db:
            user = await existing_user(db, email)
            rows = await db.execute(
                select(*SESSION_COLUMNS)
                .where(user_session.c.user_id == user.id, is_live_session(self._now_ms()))
                .order_by(user_session.c.created_at.desc(), user_session.c.id)
            )
        return [session_from(row) for row in rows]

    @verb
    async def end_session(self, actor: str, email: str, session_id: str) -> None:
        """End one session of a user. NotFound where they have no live one of that id."""
        now_ms = self._now_ms()
        async with self._changing(actor) as change:
            user = await existing_user(change.db, email)
            ended = await change.db.execute(
                update(user_session)
                .where(
                    user_session.c.user_id == user.id,
                    user_session.c.id == session_id,
                    is_live_session(now_ms),
                )
                .values(ended_at=instant_of(now_ms))
                .returning(user_session.c.id)
            )
            if ended.first() is None:
                raise NotFound(f"{user.email} has no live session {session_id}")
            before = {"session": session_id}
            await change.audit("session.end", "user", user.id, before=before, after=None)


async def _forget_old(db: AsyncConnection, user_id: str, now_ms: int) -> None:
    await db.execute(
        delete(user_session).where(
            user_session.c.user_id == user_id,
            user_session.c.expires_at < instant_of(now_ms - KEPT_MS),
        )
    )
