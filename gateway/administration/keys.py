"""API keys: create, list, revoke, rotate. A secret leaves here once, when it is made."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import ARRAY, Text, any_, func, insert, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.directory_rows import KEY_COLUMNS, key_from
from gateway.adapters.tables import api_key
from gateway.administration.checks import check_expiry, check_name, check_networks
from gateway.administration.credentials import (
    KEY_PREFIX,
    check_given_secret,
    digest_of,
    id_of_form,
    new_id,
    new_key_secret,
)
from gateway.administration.fleet import known_models
from gateway.administration.images import key_image
from gateway.administration.pages import LIMIT_DEFAULT, Page
from gateway.administration.reach import reach_of
from gateway.administration.store import Change, Store, verb
from gateway.administration.tenants import existing_tenant
from gateway.domain.instants import instant_of
from gateway.domain.key_ceiling import check_within
from gateway.domain.limits_check import given_fields, limits_from
from gateway.domain.tenant import ApiKey, Limits, RequestClass
from gateway.errors import Conflict, NotFound, Unprocessable

GRACE_MAX_MS = 90 * 24 * 3600 * 1000
HINT_CHARACTERS = 4
LIVE_KEYS_MAX = 1000
"""Of a tenant. Every gateway holds them all, and whatever is done to a tenant reads each."""
MADE_ALREADY = "made_already"
MODELS_MAX = 100
"""Each request looks through the list of its key."""


class KeyName(NamedTuple):
    """What a key is called, and whose it is."""

    name: str
    tenant_id: str


class KeyVerbs(Store):
    """The verbs on API keys, but for their limits."""

    @verb
    async def create_key(
        self,
        actor: str,
        tenant_id: str,
        name: str,
        request_class: RequestClass | str,
        *,
        expires_at_ms: int | None = None,
        models: Sequence[str] | None = None,
        ip_allow: Sequence[str] | None = None,
        secret: str | None = None,
        limits: Limits | Mapping[str, object] = Limits(),  # noqa: B008 - frozen
        within_tenant: bool = False,
        form: str | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key and return it with its secret, which cannot be had again.

        `secret` brings one instead of having it made; Conflict where it is in use, or where the
        tenant has LIVE_KEYS_MAX keys. `limits` and `within_tenant` are as for `put_key_limits`.
        `form` is a value of the form that was filled in, which makes one key, however often it is
        sent: Conflict(MADE_ALREADY) where it did; `key_id_of_form` says which.
        """
        values: dict[str, object] = {
            "tenant_id": tenant_id,
            "name": check_name(name),
            "class": _class_of(request_class),
            "expires_at": instant_of(check_expiry(expires_at_ms, now_ms=self._now_ms())),
            "ip_allow": check_networks(ip_allow),
            "id": new_id("key") if form is None else key_id_of_form(tenant_id, form),
        }
        if secret is None:
            secret = new_key_secret()
        check_given_secret(secret, prefix=KEY_PREFIX)
        async with self._changing(actor) as change:
            owner = await existing_tenant(change.db, tenant_id)
            await _check_not_made(change.db, values["id"])
            await self._check_room(change.db, tenant_id)
            values["models"] = allowed = await _checked_models(change.db, models)
            reach = await reach_of(
                change.db,
                tenant_id=tenant_id,
                currency=owner.currency,
                now_ms=self._now_ms(),
                of_key=True,
                allowed_models=allowed,
            )
            checked = limits_from(limits, reach)
            if within_tenant:
                check_within(checked, Limits(), owner)
            created = await _insert_key(change, values, secret, checked)
            await change.audit(
                "key.create", "key", created.id, before=None, after=key_image(created)
            )
        return created, secret

    @verb
    async def get_key(self, key_id: str) -> ApiKey:
        """The key, revoked or not."""
        async with self._reading() as db:
            return await existing_key(db, key_id)

    @verb
    async def list_keys(
        self, tenant_id: str, limit: int = LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[ApiKey]:
        """A tenant's keys by id, revoked and expired ones too."""
        async with self._reading() as db:
            await existing_tenant(db, tenant_id)
        query = select(*KEY_COLUMNS).where(api_key.c.tenant_id == tenant_id)
        return await self._page(query, api_key.c.id, key_from, limit, cursor)

    @verb
    async def name_keys(self, key_ids: Sequence[str]) -> dict[str, KeyName]:
        """What keys are called, revoked ones too; without those that there are not."""
        wanted = any_(literal(list(key_ids), ARRAY(Text)))
        query = select(api_key.c.id, api_key.c.name, api_key.c.tenant_id)
        async with self._reading() as db:
            rows = await db.execute(query.where(api_key.c.id == wanted))
        return {row.id: KeyName(row.name, row.tenant_id) for row in rows}

    async def revoke_key(self, actor: str, key_id: str) -> ApiKey:
        """Revoke a key for good: refused within a second on every gateway. Harmless twice."""
        revoked, changed = await self._revoke(actor, key_id)
        if changed is not None:
            await self._publish("key", key_id, changed)
        return revoked

    @verb
    async def _revoke(self, actor: str, key_id: str) -> tuple[ApiKey, int | None]:
        async with self._changing(actor) as change:
            before = await existing_key(change.db, key_id)
            if before.revoked_at_ms is not None:
                return before, None
            revoked_at = instant_of(self._now_ms())
            after, changed = await _update_key(change, before, "key.revoke", revoked_at=revoked_at)
        return after, changed

    async def rotate_key(self, actor: str, key_id: str, *, grace_ms: int) -> tuple[ApiKey, str]:
        """Replace a key by a new one with the same settings and limits; the old one works for
        `grace_ms` more. Returns the new key with its secret.

        Conflict where the key is revoked, expired or rotated already, or, with a grace, where the
        tenant has LIVE_KEYS_MAX keys beside it.
        """
        if not 0 <= grace_ms <= GRACE_MAX_MS:
            raise Unprocessable(f"grace_ms: must be 0 to {GRACE_MAX_MS}", param="grace_ms")
        secret = new_key_secret()
        replacement, changed = await self._rotate(actor, key_id, grace_ms, secret)
        if grace_ms == 0:
            await self._publish("key", key_id, changed)
        return replacement, secret

    @verb
    async def _rotate(
        self, actor: str, key_id: str, grace_ms: int, secret: str
    ) -> tuple[ApiKey, int]:
        now_ms = self._now_ms()
        async with self._changing(actor) as change:
            old = await existing_key(change.db, key_id)
            _check_rotatable(old, now_ms)
            if grace_ms > 0:
                await self._check_room(change.db, old.tenant_id, but=key_id)
            values: dict[str, object] = {
                "id": new_id("key"),
                "tenant_id": old.tenant_id,
                "name": old.name,
                "class": old.request_class,
                "expires_at": instant_of(old.expires_at_ms),
                "models": None if old.models is None else list(old.models),
                "ip_allow": None if old.ip_allow is None else list(old.ip_allow),
            }
            replacement = await _insert_key(change, values, secret, old.limits)
            ends_at_ms = now_ms + grace_ms
            if old.expires_at_ms is not None:
                ends_at_ms = min(ends_at_ms, old.expires_at_ms)
            await change.audit(
                "key.create", "key", replacement.id, before=None, after=key_image(replacement)
            )
            _, changed = await _update_key(
                change,
                old,
                "key.rotate",
                expires_at=instant_of(ends_at_ms),
                rotated_to=replacement.id,
            )
        return replacement, changed

    async def _check_room(self, db: AsyncConnection, tenant_id: str, but: str = "") -> None:
        """That the tenant may have a key more beside those that can be used, `but` that one; the
        directory's lock is held. Raises Conflict."""
        now = instant_of(self._now_ms())
        live = select(func.count()).where(
            api_key.c.tenant_id == tenant_id,
            api_key.c.id != but,
            api_key.c.revoked_at.is_(None),
            or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > now),
        )
        if (await db.scalar(live) or 0) >= LIVE_KEYS_MAX:
            raise Conflict(f"{tenant_id} has {LIVE_KEYS_MAX} keys: revoke some first")


def key_id_of_form(tenant_id: str, form: str) -> str:
    """The id of the key of that tenant which a form makes, made or not."""
    return id_of_form("key", tenant_id, form)


async def existing_key(db: AsyncConnection, key_id: str) -> ApiKey:
    """The key of that id. Raises NotFound."""
    rows = await db.execute(select(*KEY_COLUMNS).where(api_key.c.id == key_id))
    row = rows.one_or_none()
    if row is None:
        raise NotFound(f"there is no key {key_id}")
    return key_from(row)


async def _check_not_made(db: AsyncConnection, key_id: object) -> None:
    if await db.scalar(select(api_key.c.id).where(api_key.c.id == key_id)) is not None:
        raise Conflict(f"this form has made the key {key_id} already", code=MADE_ALREADY)


async def _insert_key(
    change: Change,
    values: dict[str, object],
    secret: str,
    limits: Limits = Limits(),  # noqa: B008 - frozen, so safely shared
) -> ApiKey:
    digest = digest_of(secret)
    taken = await change.db.execute(select(api_key.c.id).where(api_key.c.digest == digest))
    if taken.one_or_none() is not None:
        raise Conflict("that secret is in use already")
    row = await change.db.execute(
        insert(api_key)
        .values(
            **values,
            digest=digest,
            secret_hint=secret[-HINT_CHARACTERS:],
            limits=given_fields(limits),
        )
        .returning(*KEY_COLUMNS)
    )
    return key_from(row.one())


async def _update_key(
    change: Change, before: ApiKey, action: str, **values: object
) -> tuple[ApiKey, int]:
    row = await change.db.execute(
        update(api_key).where(api_key.c.id == before.id).values(**values).returning(*KEY_COLUMNS)
    )
    found = row.one()
    after = key_from(found)
    await change.audit(action, "key", before.id, before=key_image(before), after=key_image(after))
    return after, found.changed


def _class_of(request_class: RequestClass | str) -> RequestClass:
    try:
        return RequestClass(request_class)
    except ValueError as error:
        raise Unprocessable("class: must be interactive or batch", param="class") from error


async def _checked_models(db: AsyncConnection, models: Sequence[str] | None) -> list[str] | None:
    if models is None:
        return None
    if len(models) > MODELS_MAX:
        raise Unprocessable(f"models: must be {MODELS_MAX} at most", param="models")
    known = await known_models(db)
    for model_id in models:
        if model_id not in known:
            raise Unprocessable(f"models: there is no model {model_id}", param="models")
    return list(dict.fromkeys(models))


def _check_rotatable(key: ApiKey, now_ms: int) -> None:
    if key.revoked_at_ms is not None:
        raise Conflict(f"key {key.id} is revoked")
    if key.expires_at_ms is not None and key.expires_at_ms <= now_ms:
        raise Conflict(f"key {key.id} has expired")
    if key.rotated_to is not None:
        raise Conflict(f"key {key.id} was rotated to {key.rotated_to} already")
