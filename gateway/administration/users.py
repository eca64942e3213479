"""Users of the admin and finance APIs: their roles, passwords and whether they may come in."""

from typing import Any

from msgspec import UNSET, UnsetType
from sqlalchemy import Select, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.directory_rows import USER_COLUMNS, user_from
from gateway.adapters.tables import app_user
from gateway.administration.accounts import (
    end_sessions,
    existing_user,
    not_locked,
    user_by_email,
)
from gateway.administration.checks import check_email, check_password
from gateway.administration.credentials import new_id
from gateway.administration.images import user_image
from gateway.administration.logins import Account, LoginVerbs
from gateway.administration.pages import (
    LIMIT_DEFAULT,
    Page,
    check_page_limit,
    page_of,
    position_of,
)
from gateway.administration.passwords import hash_password
from gateway.administration.store import verb
from gateway.administration.tenants import named_tenant
from gateway.domain.account import TENANT_ROLES, Role, User
from gateway.domain.instants import instant_of
from gateway.errors import Conflict, NotFound, Unprocessable


class UserVerbs(LoginVerbs):
    """The verbs on users."""

    async def create_user(
        self,
        actor: str,
        email: str,
        role: Role | str,
        password: str,
        *,
        tenant_id: str | None = None,
    ) -> User:
        """Create a user; `tenant_id` is needed for the roles of a tenant, and for no other.
        Conflict where the address is taken, in whatever case."""
        email, checked_role = check_email(email), _role_of(role)
        _check_reach(checked_role, tenant_id)
        password_hash = await hash_password(check_password(password))
        return await self._insert_user(actor, email, checked_role, tenant_id, password_hash)

    @verb
    async def _insert_user(
        self, actor: str, email: str, role: Role, tenant_id: str | None, password_hash: str
    ) -> User:
        async with self._changing(actor) as change:
            if await user_by_email(change.db, email) is not None:
                raise Conflict(f"user {email} exists already")
            await _check_tenant(change.db, tenant_id)
            row = await change.db.execute(
                insert(app_user)
                .values(
                    id=new_id("user"),
                    email=email,
                    role=role,
                    tenant_id=tenant_id,
                    password_hash=password_hash,
                )
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
        tenant_id: str | UnsetType | None = UNSET,
        disabled: bool | None = None,
    ) -> User:
        """Change a user's role, their tenant, or whether they may come in at all; each of these
        ends their sessions. A role that is no tenant's leaves the tenant, without being told to.
        Conflict where no admin would be left who may come in: nobody could make one any more."""
        async with self._changing(actor) as change:
            before = await existing_user(change.db, email)
            values: dict[str, object] = {}
            wanted_role = before.role if role is None else _role_of(role)
            tenant = tenant_id
            if tenant is UNSET:
                tenant = before.tenant_id if wanted_role in TENANT_ROLES else None
            _check_reach(wanted_role, tenant)
            if (wanted_role, tenant) != (before.role, before.tenant_id):
                await _check_tenant(change.db, tenant)
                values |= {"role": wanted_role, "tenant_id": tenant}
            if disabled is not None and disabled != before.disabled:
                values["disabled_at"] = instant_of(self._now_ms()) if disabled else None
            if not values:
                return before
            if wanted_role is not Role.ADMIN or disabled:
                await _check_not_last_admin(change.db, before)
            row = await change.db.execute(
                update(app_user)
                .where(app_user.c.id == before.id)
                .values(**values)
                .returning(*USER_COLUMNS)
            )
            after = user_from(row.one())
            await end_sessions(change.db, before.id, now_ms=self._now_ms())
            await change.audit(
                "user.update",
                "user",
                before.id,
                before=user_image(before),
                after=user_image(after),
            )
        return after

    async def set_password(self, actor: str, email: str, password: str) -> User:
        """Give a user another password, end their sessions, and unlock them. Their tokens stay."""
        password_hash = await hash_password(check_password(password))
        return await self._store_password(actor, email, password_hash)

    async def change_password(self, actor: str, email: str, current: str, password: str) -> User:
        """The same by the user, who knows the current one. A wrong one counts as it does where they
        log in. Unprocessable names `current_password`, also where the account is locked."""
        check_password(password)
        account = await self._checked_account(email, current)
        return await self._store_password(
            actor, email, await hash_password(password), known=account
        )

    async def confirm_password(self, email: str, current: str) -> None:
        """That it is the user who sits there, and not who found their session open. A wrong one is
        as in `change_password`."""
        if not await self._confirmed(await self._checked_account(email, current)):
            raise _wrong_current()

    @verb
    async def _confirmed(self, account: Account) -> bool:
        """Whether the account still takes that password: it may have been locked, disabled or given
        another one while this one was hashed. Wrong ones before it are forgotten, as they are where
        the user logs in."""
        async with self._engine.begin() as db:
            rows = await db.execute(
                update(app_user)
                .where(account.is_as_it_was(), not_locked(instant_of(self._now_ms())))
                .values(failed_logins=0, locked_until=None)
                .returning(app_user.c.id)
            )
            return rows.first() is not None

    async def _checked_account(self, email: str, current: str) -> Account:
        checked = await self._checked(email, current)
        if checked is None:
            raise _wrong_current()
        return checked[0]

    @verb
    async def _store_password(
        self, actor: str, email: str, password_hash: str, *, known: Account | None = None
    ) -> User:
        now_ms = self._now_ms()
        async with self._changing(actor) as change:
            user = await existing_user(change.db, email)
            changing = update(app_user).where(app_user.c.id == user.id)
            if known is not None:
                changing = changing.where(known.is_as_it_was(), not_locked(instant_of(now_ms)))
            rows = await change.db.execute(
                changing.values(
                    password_hash=password_hash,
                    password_changed_at=instant_of(now_ms),
                    failed_logins=0,
                    locked_until=None,
                ).returning(*USER_COLUMNS)
            )
            row = rows.one_or_none()
            if row is None:
                raise _wrong_current()
            ended = await end_sessions(change.db, user.id, now_ms=now_ms)
            after = {"sessions_ended": ended}
            await change.audit("user.password", "user", user.id, before=None, after=after)
        return user_from(row)

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

    @verb
    async def find_users(
        self,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
        *,
        email: str | None = None,
        role: Role | str | None = None,
        tenant_id: str | None = None,
    ) -> Page[User]:
        """Users by address, in whatever case: those whose address contains `email`, who have that
        role, and who belong to that tenant; None takes any."""
        check_page_limit(limit)
        by = func.lower(app_user.c.email)
        query: Select[Any] = select(*USER_COLUMNS, by.label("place")).order_by(by).limit(limit + 1)
        if email is not None:
            query = query.where(func.strpos(by, func.lower(email)) > 0)
        if role is not None:
            query = query.where(app_user.c.role == _role_of(role))
        if tenant_id is not None:
            query = query.where(app_user.c.tenant_id == tenant_id)
        if cursor is not None:
            query = query.where(by > position_of(cursor))
        async with self._reading() as db:
            rows = await db.execute(query)
        return page_of([(row.place, user_from(row)) for row in rows], limit)


def _role_of(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError as error:
        roles = ", ".join(Role)
        raise Unprocessable(f"role: must be one of {roles}", param="role") from error


def _check_reach(role: Role, tenant_id: str | None) -> None:
    """Whether the role is one that is held in a tenant exactly where one is named."""
    if role in TENANT_ROLES and tenant_id is None:
        raise Unprocessable(f"tenant_id: the role {role} is held in a tenant", param="tenant_id")
    if role not in TENANT_ROLES and tenant_id is not None:
        raise Unprocessable(f"tenant_id: the role {role} is held in no tenant", param="tenant_id")


async def _check_not_last_admin(db: AsyncConnection, user: User) -> None:
    """Whether this user can cease to be an admin; the directory's lock is held. Raises Conflict."""
    if user.role is not Role.ADMIN or user.disabled:
        return
    others = select(func.count()).where(
        app_user.c.role == Role.ADMIN,
        app_user.c.disabled_at.is_(None),
        app_user.c.id != user.id,
    )
    if not await db.scalar(others):
        raise Conflict(f"{user.email} is the last admin who may log in: make another one first")


async def _check_tenant(db: AsyncConnection, tenant_id: str | None) -> None:
    if tenant_id is not None:
        await named_tenant(db, tenant_id)


def _wrong_current() -> Unprocessable:
    return Unprocessable(
        "current_password: is wrong, or the account is locked for a while",
        param="current_password",
    )
