"""What the verbs on users, tokens and sessions share: a user by their address, and what ends with
what they were."""

from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.directory_rows import USER_COLUMNS, user_from
from gateway.adapters.tables import app_user, user_session
from gateway.domain.account import User
from gateway.domain.instants import instant_of
from gateway.errors import NotFound

IDLE_MAX_MS = 8 * 3_600_000
"""How long a session may be of no use before it ends."""
SEEN_AFTER_MS = 60_000
"""How old the last use of a session or a token may be before it is written down again."""


async def existing_user(db: AsyncConnection, email: str) -> User:
    """The user of that address, in whatever case. Raises NotFound."""
    found = await user_by_email(db, email)
    if found is None:
        raise NotFound(f"there is no user {email}")
    return found


async def user_by_email(db: AsyncConnection, email: str) -> User | None:
    """The same, or None."""
    rows = await db.execute(select(*USER_COLUMNS).where(has_email(email)))
    row = rows.one_or_none()
    return None if row is None else user_from(row)


def has_email(email: str) -> ColumnElement[bool]:
    """Whether a user has that address, in whatever case."""
    return func.lower(app_user.c.email) == func.lower(email)


def not_locked(now: datetime | None) -> ColumnElement[bool]:
    """Whether a user may log in, as far as wrong passwords go."""
    return or_(app_user.c.locked_until.is_(None), app_user.c.locked_until <= now)


def is_live_session(now_ms: int) -> ColumnElement[bool]:
    """Whether a session may still be used."""
    return and_(
        user_session.c.ended_at.is_(None),
        user_session.c.expires_at > instant_of(now_ms),
        user_session.c.seen_at > instant_of(now_ms - IDLE_MAX_MS),
    )


async def end_sessions(
    db: AsyncConnection, user_id: str, *, now_ms: int, keep: bytes | None = None
) -> int:
    """End all of a user's sessions but the one with the digest `keep`; how many were live."""
    ended = await db.execute(
        update(user_session)
        .where(
            user_session.c.user_id == user_id,
            is_live_session(now_ms),
            user_session.c.digest.is_distinct_from(keep),
        )
        .values(ended_at=instant_of(now_ms))
        .returning(user_session.c.id)
    )
    return len(ended.all())
