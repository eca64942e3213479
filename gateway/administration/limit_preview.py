"""What a change of limits would do to them. Nothing is saved, and nothing audited."""

from collections.abc import Mapping

from sqlalchemy import BigInteger, cast, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.tables import tenant as tenant_table
from gateway.administration.keys import existing_key
from gateway.administration.limits import Revision
from gateway.administration.reach import reach_of
from gateway.administration.store import Store, verb
from gateway.administration.tenants import existing_tenant
from gateway.administration.views import tenant_limits
from gateway.domain.key_ceiling import check_within
from gateway.domain.limit_effect import Promised
from gateway.domain.limits_check import changed_limits, limits_from
from gateway.domain.tenant import Limits, Tenant
from gateway.serving.limit_effect import Change, KeyChange

PROMISED = ("max_sequences", "tpm")
"""What all tenants may have at once is added up of these."""


class PreviewVerbs(Store):
    """The verbs on limits that change nothing. They refuse what a change would be refused for."""

    async def preview_tenant_limits(
        self, tenant_id: str, limits: Limits | Mapping[str, object]
    ) -> Change:
        """As `put_tenant_limits` would make it."""
        return await self._preview(tenant_id, lambda _, reach: limits_from(limits, reach))

    async def preview_tenant_changes(
        self, tenant_id: str, changes: Mapping[str, object], *, model_id: str | None = None
    ) -> Change:
        """As `change_tenant_limits` would make it."""
        return await self._preview(
            tenant_id,
            lambda limits, reach: changed_limits(limits, changes, reach, model_id=model_id),
        )

    @verb
    async def preview_key_limits(
        self, key_id: str, limits: Limits | Mapping[str, object], *, within_tenant: bool = False
    ) -> KeyChange:
        """As `put_key_limits` would make it."""
        async with self._reading() as db:
            key = await existing_key(db, key_id)
            tenant = await existing_tenant(db, key.tenant_id)
            reach = await reach_of(
                db,
                tenant_id=tenant.id,
                currency=tenant.currency,
                now_ms=self._now_ms(),
                of_key=True,
                allowed_models=key.models,
            )
        then = limits_from(limits, reach)
        if within_tenant:
            check_within(then, key.limits, tenant)
        return KeyChange(tenant, key, key.limits, then)

    @verb
    async def _preview(self, tenant_id: str, revise: Revision) -> Change:
        async with self._reading() as db:
            tenant = await existing_tenant(db, tenant_id)
            reach = await reach_of(
                db, tenant_id=tenant_id, currency=tenant.currency, now_ms=self._now_ms()
            )
            then = revise(tenant.limits, reach)
            others = await _promised_to_others(db, tenant_id)
        return Change(tenant, tenant_limits(tenant.limits), tenant_limits(then), others)


def no_change(tenant: Tenant) -> Change:
    """Of a tenant whose limits stay as they are; what others are promised is left out."""
    limits = tenant_limits(tenant.limits)
    return Change(tenant, limits, limits, {})


async def _promised_to_others(db: AsyncConnection, tenant_id: str) -> dict[str, Promised]:
    """Of the tenants that are not suspended."""
    columns = tenant_table.c
    query = select(
        func.count(),
        *(
            column
            for name in PROMISED
            for limit in (cast(columns.limits[name].astext, BigInteger),)
            for column in (func.count(limit), func.coalesce(func.sum(limit), 0))
        ),
    ).where(columns.suspended_at.is_(None), columns.id != tenant_id)
    tenants, *found = (await db.execute(query)).one()
    return {
        name: Promised(total=int(total), unlimited=tenants - limited)
        for name, limited, total in zip(PROMISED, found[::2], found[1::2], strict=True)
    }
