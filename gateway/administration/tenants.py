"""Tenants: create, rename, suspend, and whom their invoices are made out to."""

from collections.abc import Mapping

from sqlalchemy import insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.directory_rows import KEY_COLUMNS, TENANT_COLUMNS, key_from, tenant_from
from gateway.adapters.revocations import last_revocation
from gateway.adapters.tables import api_key
from gateway.adapters.tables import tenant as tenant_table
from gateway.administration.billing_profiles import check_billing_profile, profile_columns
from gateway.administration.checks import (
    check_currency,
    check_name,
    check_tenant_id,
    check_time_zone,
)
from gateway.administration.images import tenant_image
from gateway.administration.pages import LIMIT_DEFAULT, Page
from gateway.administration.reach import reach_of
from gateway.administration.store import Store, verb
from gateway.domain.instants import instant_of
from gateway.domain.limits_check import given_fields, has_budget, limits_from
from gateway.domain.tenant import BillingProfile, Limits, Tenant
from gateway.errors import Conflict, NotFound, Unprocessable


class TenantVerbs(Store):
    """The verbs on tenants, but for their limits."""

    @verb
    async def create_tenant(
        self,
        actor: str,
        tenant_id: str,
        name: str,
        limits: Limits | Mapping[str, object] = Limits(),  # noqa: B008 - frozen
        *,
        currency: str = "USD",
        time_zone: str = "UTC",
        billing_profile: BillingProfile = BillingProfile(),  # noqa: B008 - frozen
    ) -> Tenant:
        """Create a tenant. Conflict where the id is taken; ids are never used again."""
        values = {
            "id": check_tenant_id(tenant_id),
            "name": check_name(name),
            "currency": check_currency(currency),
            "time_zone": check_time_zone(time_zone),
            **profile_columns(check_billing_profile(billing_profile)),
        }
        async with self._changing(actor) as change:
            reach = await reach_of(
                change.db, tenant_id=tenant_id, currency=currency, now_ms=self._now_ms()
            )
            checked = limits_from(limits, reach)
            if await _found(change.db, tenant_id) is not None:
                raise Conflict(f"tenant {tenant_id} exists already")
            row = await change.db.execute(
                insert(tenant_table)
                .values(**values, limits=given_fields(checked))
                .returning(*TENANT_COLUMNS)
            )
            created = tenant_from(row.one())
            await change.audit(
                "tenant.create", "tenant", tenant_id, before=None, after=tenant_image(created)
            )
        return created

    async def update_tenant(
        self,
        actor: str,
        tenant_id: str,
        *,
        name: str | None = None,
        suspended: bool | None = None,
        currency: str | None = None,
        time_zone: str | None = None,
        billing_profile: BillingProfile | None = None,
    ) -> Tenant:
        """Change what is given, leave the rest; the currency only while neither the tenant nor a
        key of its has a budget, which would be another amount. A suspended tenant's keys are
        refused within a second on every gateway, and work again as soon after it is resumed."""
        values: dict[str, object] = {}
        if name is not None:
            values["name"] = check_name(name)
        if currency is not None:
            values["currency"] = check_currency(currency)
        if time_zone is not None:
            values["time_zone"] = check_time_zone(time_zone)
        if billing_profile is not None:
            values |= profile_columns(check_billing_profile(billing_profile))
        withdrawn = 0
        if suspended is False and self._redis is not None:
            withdrawn = await last_revocation(self._redis, "tenant", tenant_id)
        updated, changed = await self._update(actor, tenant_id, values, suspended, withdrawn)
        if suspended and changed is not None:
            await self._publish("tenant", tenant_id, changed)
        elif suspended is False:
            await self._unpublish("tenant", tenant_id)
        return updated

    @verb
    async def _update(
        self,
        actor: str,
        tenant_id: str,
        values: dict[str, object],
        suspended: bool | None,
        withdrawn: int,
    ) -> tuple[Tenant, int | None]:
        async with self._changing(actor) as change:
            before = await existing_tenant(change.db, tenant_id)
            if suspended is not None and suspended != before.suspended:
                values["suspended_at"] = instant_of(self._now_ms()) if suspended else None
            elif suspended is False and await _lacks(change.db, tenant_id, withdrawn):
                # A trigger writes the number of this change instead.
                values["resumed_change"] = tenant_table.c.resumed_change + 1
            if not values:
                return before, None
            if values.get("currency", before.currency) != before.currency:
                await _check_no_budget(change.db, before)
            row = await change.db.execute(
                update(tenant_table)
                .where(tenant_table.c.id == tenant_id)
                .values(**values)
                .returning(*TENANT_COLUMNS)
            )
            found = row.one()
            after = tenant_from(found)
            await change.audit(
                "tenant.update",
                "tenant",
                tenant_id,
                before=tenant_image(before),
                after=tenant_image(after),
            )
        return after, found.changed

    @verb
    async def get_tenant(self, tenant_id: str) -> Tenant:
        """The tenant, suspended or not."""
        async with self._reading() as db:
            return await existing_tenant(db, tenant_id)

    @verb
    async def list_tenants(
        self,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
        *,
        search: str | None = None,
        suspended: bool | None = None,
    ) -> Page[Tenant]:
        """Tenants by id; of all only those whose id or name holds `search`, whatever its case, and
        only those that are suspended or are not, where that is asked for."""
        query = select(*TENANT_COLUMNS)
        if search is not None:
            names = (tenant_table.c.id, tenant_table.c.name)
            query = query.where(or_(*(each.icontains(search, autoescape=True) for each in names)))
        if suspended is not None:
            at = tenant_table.c.suspended_at
            query = query.where(at.is_not(None) if suspended else at.is_(None))
        return await self._page(query, tenant_table.c.id, tenant_from, limit, cursor)


async def _check_no_budget(db: AsyncConnection, found: Tenant) -> None:
    rows = await db.execute(select(*KEY_COLUMNS).where(api_key.c.tenant_id == found.id))
    keys = [key_from(row) for row in rows]
    for shown, limits in (("the tenant", found.limits), *((f"key {k.id}", k.limits) for k in keys)):
        if has_budget(limits):
            raise Unprocessable(
                f"currency: {shown} has a budget in {found.currency}: take it away first",
                param="currency",
            )


async def existing_tenant(db: AsyncConnection, tenant_id: str) -> Tenant:
    """The tenant of that id. Raises NotFound."""
    found = await _found(db, tenant_id)
    if found is None:
        raise NotFound(f"there is no tenant {tenant_id}")
    return found


async def named_tenant(db: AsyncConnection, tenant_id: str) -> Tenant:
    """The same, of a field `tenant_id`. Raises Unprocessable, naming that."""
    try:
        return await existing_tenant(db, tenant_id)
    except NotFound as error:
        raise Unprocessable(f"tenant_id: {error.message}", param="tenant_id") from error


async def _lacks(db: AsyncConnection, tenant_id: str, withdrawn: int) -> bool:
    """Whether a restored Postgres knows nothing of a suspension of that change."""
    query = select(tenant_table.c.resumed_change).where(tenant_table.c.id == tenant_id)
    return int(await db.scalar(query) or 0) < withdrawn


async def _found(db: AsyncConnection, tenant_id: str) -> Tenant | None:
    rows = await db.execute(select(*TENANT_COLUMNS).where(tenant_table.c.id == tenant_id))
    row = rows.one_or_none()
    return None if row is None else tenant_from(row)
