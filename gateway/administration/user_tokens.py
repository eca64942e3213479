"""Users' bearer tokens: given, held to scopes, listed, revoked, and whose each is."""

from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, func, insert, or_, select, update

from gateway.adapters.directory_rows import TOKEN_COLUMNS, USER_COLUMNS, token_from, user_from
from gateway.adapters.tables import app_user, user_token
from gateway.administration.accounts import SEEN_AFTER_MS, existing_user
from gateway.administration.checks import check_expiry, check_token_name
from gateway.administration.credentials import check_given_secret, digest_of, new_token_secret
from gateway.administration.store import Store, verb
from gateway.domain.account import Role, User, UserToken
from gateway.domain.instants import instant_of, ms_of
from gateway.domain.permissions import PERMISSIONS_OF, Caller, Permission, permissions_of
from gateway.errors import Conflict, NotFound, StoreUnavailable, Unprocessable

_KNOWN_COLUMNS = (*USER_COLUMNS, user_token.c.scopes, user_token.c.last_used_at)


class _Known(NamedTuple):
    user: User
    scopes: frozenset[str] | None
    last_used_at_ms: int | None


class TokenVerbs(Store):
    """The verbs on tokens."""

    @verb
    async def issue_token(
        self,
        actor: str,
        email: str,
        name: str,
        *,
        secret: str | None = None,
        scopes: Collection[str] | None = None,
        expires_at_ms: int | None = None,
    ) -> str:
        """Give a user a bearer token and return it; it cannot be had again. `scopes` are the
        permissions that it is held to; without, it has all that the user's role has.

        Conflict where the user has a live token of that name, or where `secret` is in use.
        """
        name = check_token_name(name)
        expires_at = instant_of(check_expiry(expires_at_ms, now_ms=self._now_ms()))
        secret = new_token_secret() if secret is None else check_given_secret(secret)
        digest = digest_of(secret)
        async with self._changing(actor) as change:
            user = await existing_user(change.db, email)
            held_to = None if scopes is None else _checked_scopes(scopes, user.role)
            taken = await change.db.execute(
                select(user_token.c.name).where(
                    or_(user_token.c.digest == digest, _live_token(user.id, name))
                )
            )
            if taken.first() is not None:
                raise Conflict(f"{user.email} has a token {name} already, or that secret is in use")
            await change.db.execute(
                insert(user_token).values(
                    digest=digest,
                    user_id=user.id,
                    name=name,
                    expires_at=expires_at,
                    scopes=held_to,
                )
            )
            after = {"token": name, "scopes": held_to, "expires_at_ms": expires_at_ms}
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
    async def list_tokens(self, email: str) -> list[UserToken]:
        """A user's live tokens by name."""
        async with self._reading() as db:
            user = await existing_user(db, email)
            rows = await db.execute(
                select(*TOKEN_COLUMNS).where(_live_token(user.id)).order_by(user_token.c.name)
            )
        return [token_from(row) for row in rows]

    async def caller_by_token(self, secret: str) -> Caller | None:
        """Whose live token this is, and what they may do with it; None where it is unknown,
        revoked or expired, or its user is disabled."""
        known = await self._known_token(secret)
        if known is None:
            return None
        await self._note_use(secret, known.last_used_at_ms)
        # A scope that this release does not know gives nothing, and takes nothing from the others.
        scopes = known.scopes
        held = None if scopes is None else frozenset(p for p in Permission if p in scopes)
        return Caller(
            user=known.user, permissions=permissions_of(known.user.role, held), via="token"
        )

    @verb
    async def _known_token(self, secret: str) -> _Known | None:
        query = (
            select(*_KNOWN_COLUMNS)
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
        if row is None:
            return None
        scopes = None if row.scopes is None else frozenset(row.scopes)
        return _Known(user_from(row), scopes, ms_of(row.last_used_at))

    async def _note_use(self, secret: str, last_used_at_ms: int | None) -> None:
        now_ms = self._now_ms()
        if last_used_at_ms is None or last_used_at_ms <= now_ms - SEEN_AFTER_MS:
            with suppress(StoreUnavailable):  # who reads goes on while nothing can be written
                await self._write_use(secret, now_ms)

    @verb
    async def _write_use(self, secret: str, now_ms: int) -> None:
        due = or_(
            user_token.c.last_used_at.is_(None),
            user_token.c.last_used_at <= instant_of(now_ms - SEEN_AFTER_MS),
        )
        async with self._engine.begin() as db:
            await db.execute(
                update(user_token)
                .where(user_token.c.digest == digest_of(secret), due)
                .values(last_used_at=instant_of(now_ms))
            )


def _live_token(user_id: str, name: str | None = None) -> ColumnElement[bool]:
    live = and_(
        user_token.c.user_id == user_id,
        user_token.c.revoked_at.is_(None),
        or_(user_token.c.expires_at.is_(None), user_token.c.expires_at > func.now()),
    )
    return live if name is None else and_(live, user_token.c.name == name)


def _checked_scopes(scopes: Collection[str], role: Role) -> list[str]:
    """The scopes in order, each once. Raises Unprocessable for one that the role does not have."""
    if not scopes:
        raise Unprocessable("scopes: must be null, or at least one permission", param="scopes")
    held = PERMISSIONS_OF[role]
    for scope in scopes:
        if scope not in held:
            these = ", ".join(sorted(held))
            raise Unprocessable(
                f"scopes: the role {role} has no permission {scope!r}; it has {these}",
                param="scopes",
            )
    return sorted({str(scope) for scope in scopes})
