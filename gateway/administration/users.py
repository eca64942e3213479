"""Users of the admin and finance APIs, and their bearer tokens."""

import asyncio

from argon2 import PasswordHasher
from sqlalchemy import ColumnElement, and_, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.directory_rows import USER_COLUMNS, user_from
from gateway.adapters.tables import app_user, user_token
from gateway.administration.checks import (
    check_email,
    check_expiry,
    check_password,
    check_token_name,
)
from gateway.administration.credentials import (
    check_given_secret,
    digest_of,
    new_id,
    new_token_secret,
)
from gateway.administration.images import user_image
from gateway.administration.pages import LIMIT_DEFAULT, Page
from gateway.administration.store import Store, verb
from gateway.domain.account import Role, User
from gateway.domain.instants import instant_of
from gateway.domain.permissions import Caller, permissions_of
from gateway.errors import Conflict, NotFound, Unprocessable

_hasher = PasswordHasher()


class UserVerbs(Store):
    """The verbs on users and tokens."""

    async def create_user(self, actor: str, email: str, role: Role | str, password: str) -> User:
        """Create a user. Conflict where the address is taken, in whatever case."""
        email, checked_role = check_email(email), _role_of(role)
        # Argon2 takes a core for some tens of milliseconds and releases the GIL meanwhile.
        password_hash = await asyncio.to_thread(_hasher.hash, check_password(password))
        return await self._insert_user(actor, email, checked_role, password_hash)

    @verb
    async def _insert_user(self, actor: str, email: str, role: Role, password_hash: str) -> User:
        async with self._changing(actor) as change:
            if await _by_email(change.db, email) is not None:
                raise Conflict(f"user {email} exists already")
            row = await change.db.execute(
                insert(app_user)
                .values(id=new_id("user"), email=email, role=role, password_hash=password_hash)
                .returning(*USER_COLUMNS)
            )
            created = user_from(row.one())
            await change.audit(
                "user.create", "user", created.id, before=None, after=user_image(created)
            )
        return created

    @verb
    async def update_user(
        self,
        actor: str,
        email: str,
        *,
        role: Role | str | None = None,
        disabled: bool | None = None,
    ) -> User:
        """Change a user's role, or whether all their tokens are refused."""
        values: dict[str, object] = {} if role is None else {"role": _role_of(role)}
        async with self._changing(actor) as change:
            before = await existing_user(change.db, email)
            if disabled is not None and disabled != before.disabled:
                values["disabled_at"] = instant_of(self._now_ms()) if disabled else None
            if not values:
                return before
            row = await change.db.execute(
                update(app_user)
                .where(app_user.c.id == before.id)
                .values(**values)
                .returning(*USER_COLUMNS)
            )
            after = user_from(row.one())
            await change.audit(
                "user.update",
                "user",
                before.id,
                before=user_image(before),
                after=user_image(after),
            )
        return after

    @verb
    async def issue_token(
        self,
        actor: str,
        email: str,
        name: str,
        *,
        secret: str | None = None,
        expires_at_ms: int | None = None,
    ) -> str:
        """Give a user a bearer token and return it; it cannot be had again.

        Conflict where the user has a live token of that name, or where `secret` is in use.
        """
        name = check_token_name(name)
        expires_at = instant_of(check_expiry(expires_at_ms, now_ms=self._now_ms()))
        secret = new_token_secret() if secret is None else check_given_secret(secret)
        digest = digest_of(secret)
        async with self._changing(actor) as change:
            user = await existing_user(change.db, email)
            taken = await change.db.execute(
                select(user_token.c.name).where(
                    or_(user_token.c.digest == digest, _live_token(user.id, name))
                )
            )
            if taken.first() is not None:
                raise Conflict(f"{user.email} has a token {name} already, or that secret is in use")
            await change.db.execute(
                insert(user_token).values(
                    digest=digest, user_id=user.id, name=name, expires_at=expires_at
                )
            )
            after = {"token": name, "expires_at_ms": expires_at_ms}
            await change.audit("token.issue", "user", user.id, before=None, after=after)
        return secret

    @verb
    async def revoke_token(self, actor: str, email: str, name: str) -> None:
        """Refuse that token of the user's from now on."""
        async with self._changing(actor) as change:
            user = await existing_user(change.db, email)
            revoked = await change.db.execute(
                update(user_token)
                .where(_live_token(user.id, name))
                .values(revoked_at=func.now())
                .returning(user_token.c.name)
            )
            if revoked.first() is None:
                raise NotFound(f"{user.email} has no live token {name}")
            await change.audit("token.revoke", "user", user.id, before={"token": name}, after=None)

    @verb
    async def user_by_token(self, secret: str) -> User | None:
        """Whose live token this is; None where it is unknown, revoked or expired, or its user is
        disabled."""
        query = (
            select(*USER_COLUMNS)
            .join(user_token, user_token.c.user_id == app_user.c.id)
            .where(
                user_token.c.digest == digest_of(secret),
                user_token.c.revoked_at.is_(None),
                or_(
                    user_token.c.expires_at.is_(None),
                    user_token.c.expires_at > instant_of(self._now_ms()),
                ),
                app_user.c.disabled_at.is_(None),
            )
        )
        async with self._reading() as db:
            row = (await db.execute(query)).one_or_none()
        return None if row is None else user_from(row)

    async def caller_by_token(self, secret: str) -> Caller | None:
        """Whose live token this is, and what they may do with it; None where it is unknown,
        revoked or expired, or its user is disabled."""
        user = await self.user_by_token(secret)
        if user is None:
            return None
        return Caller(user=user, permissions=permissions_of(user.role), via="token")

    @verb
    async def get_user(self, user_id: str) -> User:
        """The user of that id, disabled or not."""
        async with self._reading() as db:
            rows = await db.execute(select(*USER_COLUMNS).where(app_user.c.id == user_id))
        row = rows.one_or_none()
        if row is None:
            raise NotFound(f"there is no user {user_id}")
        return user_from(row)

    @verb
    async def list_users(self, limit: int = LIMIT_DEFAULT, cursor: str | None = None) -> Page[User]:
        """Users by id."""
        query = select(*USER_COLUMNS)
        return await self._page(query, app_user.c.id, user_from, limit, cursor)


async def existing_user(db: AsyncConnection, email: str) -> User:
    """The user of that address, in whatever case. Raises NotFound."""
    found = await _by_email(db, email)
    if found is None:
        raise NotFound(f"there is no user {email}")
    return found


async def _by_email(db: AsyncConnection, email: str) -> User | None:
    rows = await db.execute(
        select(*USER_COLUMNS).where(func.lower(app_user.c.email) == func.lower(email))
    )
    row = rows.one_or_none()
    return None if row is None else user_from(row)


def _live_token(user_id: str, name: str) -> ColumnElement[bool]:
    return and_(
        user_token.c.user_id == user_id,
        user_token.c.name == name,
        user_token.c.revoked_at.is_(None),
        or_(user_token.c.expires_at.is_(None), user_token.c.expires_at > func.now()),
    )


def _role_of(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError as error:
        roles = ", ".join(Role)
        raise Unprocessable(f"role: must be one of {roles}", param="role") from error
