"""Limits of tenants and keys: read, replaced whole, or changed field by field."""

from collections.abc import Callable, Mapping

from sqlalchemy import update

from gateway.adapters.directory_rows import KEY_COLUMNS, TENANT_COLUMNS, key_from, tenant_from
from gateway.adapters.tables import api_key, tenant
from gateway.administration.images import limits_image
from gateway.administration.keys import existing_key
from gateway.administration.reach import reach_of
from gateway.administration.store import Store, verb
from gateway.administration.tenants import existing_tenant
from gateway.administration.views import tenant_limits
from gateway.domain.key_ceiling import check_within
from gateway.domain.limits_check import Reach, changed_limits, given_fields, limits_from
from gateway.domain.tenant import ApiKey, Limits, Tenant, TenantLimits
from gateway.errors import Conflict

LIMITS_CHANGED = "limits_changed"
"""The code of a Conflict with limits that somebody else saved."""

Revision = Callable[[Limits, Reach], Limits]
"""From the limits in force and what they can reach, the limits to be stored."""


class LimitVerbs(Store):
    """The verbs on limits. What they store is in force on every gateway within a second."""

    async def put_tenant_limits(
        self,
        actor: str,
        tenant_id: str,
        limits: Limits | Mapping[str, object],
        *,
        if_version: int | None = None,
    ) -> Tenant:
        """Replace a tenant's limits; fields absent from a mapping take their defaults. With
        `if_version` only those of that version: Conflict(limits_changed) where others were saved
        since."""
        return await self._revise_tenant(
            actor, tenant_id, replacement(limits), if_version=if_version
        )

    async def change_tenant_limits(
        self,
        actor: str,
        tenant_id: str,
        changes: Mapping[str, object],
        *,
        model_id: str | None = None,
    ) -> Tenant:
        """Change the named fields only (of one model where `model_id` is given), whatever the
        others are by then."""
        return await self._revise_tenant(actor, tenant_id, amendment(changes, model_id))

    @verb
    async def get_tenant_limits(self, tenant_id: str) -> TenantLimits:
        """A tenant's limits as they hold, its defaults filled in."""
        async with self._reading() as db:
            return tenant_limits((await existing_tenant(db, tenant_id)).limits)

    async def put_key_limits(
        self,
        actor: str,
        key_id: str,
        limits: Limits | Mapping[str, object],
        *,
        within_tenant: bool = False,
        if_version: int | None = None,
    ) -> ApiKey:
        """Replace a key's limits; its tenant's hold beside them. `within_tenant` refuses what goes
        beyond those, which whoever runs the gateway may write, and the tenant's own people not.
        `if_version` is as for a tenant's."""
        revise = replacement(limits)
        return await self._revise_key(
            actor, key_id, revise, within_tenant=within_tenant, if_version=if_version
        )

    async def change_key_limits(
        self,
        actor: str,
        key_id: str,
        changes: Mapping[str, object],
        *,
        model_id: str | None = None,
    ) -> ApiKey:
        """Change the named fields only (of one model where `model_id` is given), whatever the
        others are by then."""
        return await self._revise_key(actor, key_id, amendment(changes, model_id))

    @verb
    async def get_key_limits(self, key_id: str) -> Limits:
        """A key's own limits; what is None of its data policy and its waiting is its tenant's."""
        async with self._reading() as db:
            return (await existing_key(db, key_id)).limits

    @verb
    async def _revise_tenant(
        self, actor: str, tenant_id: str, revise: Revision, *, if_version: int | None = None
    ) -> Tenant:
        async with self._changing(actor) as change:
            before = await existing_tenant(change.db, tenant_id)
            _check_version(before.limits_version, if_version)
            reach = await reach_of(
                change.db,
                tenant_id=tenant_id,
                currency=before.currency,
                now_ms=self._now_ms(),
            )
            revised = revise(before.limits, reach)
            if tenant_limits(revised) == tenant_limits(before.limits):
                return before
            row = await change.db.execute(
                update(tenant)
                .where(tenant.c.id == tenant_id)
                .values(limits=given_fields(revised))
                .returning(*TENANT_COLUMNS)
            )
            after = tenant_from(row.one())
            await change.audit(
                "tenant.limits",
                "tenant",
                tenant_id,
                before=limits_image(tenant_limits(before.limits)),
                after=limits_image(tenant_limits(after.limits)),
            )
        return after

    @verb
    async def _revise_key(
        self,
        actor: str,
        key_id: str,
        revise: Revision,
        *,
        within_tenant: bool = False,
        if_version: int | None = None,
    ) -> ApiKey:
        async with self._changing(actor) as change:
            before = await existing_key(change.db, key_id)
            _check_version(before.limits_version, if_version)
            owner = await existing_tenant(change.db, before.tenant_id)
            reach = await reach_of(
                change.db,
                tenant_id=owner.id,
                currency=owner.currency,
                now_ms=self._now_ms(),
                of_key=True,
                allowed_models=before.models,
            )
            revised = revise(before.limits, reach)
            if within_tenant:
                check_within(revised, before.limits, owner)
            if revised == before.limits:
                return before
            row = await change.db.execute(
                update(api_key)
                .where(api_key.c.id == key_id)
                .values(limits=given_fields(revised))
                .returning(*KEY_COLUMNS)
            )
            after = key_from(row.one())
            await change.audit(
                "key.limits",
                "key",
                key_id,
                before=limits_image(before.limits),
                after=limits_image(after.limits),
            )
        return after


def _check_version(stored: int, wanted: int | None) -> None:
    if wanted is not None and stored != wanted:
        raise Conflict("the limits were changed meanwhile", code=LIMITS_CHANGED)


def replacement(limits: Limits | Mapping[str, object]) -> Revision:
    """All of the limits, whatever they are."""
    return lambda _, reach: limits_from(limits, reach)


def amendment(changes: Mapping[str, object], model_id: str | None) -> Revision:
    """The named fields, of one model where that is given."""
    return lambda limits, reach: changed_limits(limits, changes, reach, model_id=model_id)
