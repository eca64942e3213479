"""Limits of many tenants in one change: all of them or none, each with its own audit entry."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.directory_rows import TENANT_COLUMNS, tenant_from
from gateway.adapters.tables import tenant as tenant_table
from gateway.administration.images import limits_image
from gateway.administration.limits import LIMITS_CHANGED, Revision, amendment, replacement
from gateway.administration.reach import reaches_of
from gateway.administration.store import Change, Store, verb
from gateway.administration.views import View, tenant_limits
from gateway.domain.limits_check import given_fields
from gateway.domain.tenant import Limits, Tenant, TenantLimits
from gateway.errors import Conflict, NotFound, Unprocessable

TENANTS_MAX = 1000
NAMED_MAX = 5
"""Tenants that one refusal names."""
CHECKED_AT_ONCE = 50
"""Limits are checked in so many steps' length, so that requests are served in between."""


@dataclass(frozen=True)
class BulkChange:
    """What was done: the id that its audit entries share, each tenant's limits as they now are, in
    the order asked, and which of them are others than before, in the order written."""

    id: str
    limits: dict[str, TenantLimits]
    changed: tuple[str, ...]

    @property
    def latest(self) -> str:
        """The tenant that was written last: who goes by its change goes by all of them."""
        return self.changed[-1] if self.changed else next(iter(self.limits))


@dataclass(frozen=True)
class _Wish:
    """What is wanted of a tenant, and how a refusal names the item and its limits."""

    tenant_id: str
    revise: Revision
    item: str | None = None
    if_version: int | None = None

    def refused(self, error: Unprocessable) -> Unprocessable:
        if self.item is None:
            return Unprocessable(f"{self.tenant_id}: {error.message}", param=error.param)
        limits = f"{self.item}.limits"
        if error.param is None:
            return Unprocessable(f"{limits}: {error.message}", param=limits)
        return Unprocessable(f"{limits}.{error.message}", param=f"{limits}.{error.param}")


class BulkLimitVerbs(Store):
    """The verbs on limits of many tenants."""

    async def put_many_limits(
        self,
        actor: str,
        wanted: Sequence[tuple[str, Limits | Mapping[str, object]]],
        *,
        if_versions: Mapping[str, int] | None = None,
    ) -> BulkChange:
        """Replace the limits of up to 1000 tenants; `if_versions` is as for `change_many_limits`.
        Raises Unprocessable naming the item, such as `changes[3].limits.tpm`; then nothing is
        changed."""
        _check_count(len(wanted))
        named: set[str] = set()
        for index, (tenant_id, _) in enumerate(wanted):
            if tenant_id in named:
                field = f"changes[{index}].tenant_id"
                raise Unprocessable(f"{field}: it is named before", param=field)
            named.add(tenant_id)
        seen = if_versions or {}
        wishes = [
            _Wish(tenant_id, replacement(limits), f"changes[{index}]", seen.get(tenant_id))
            for index, (tenant_id, limits) in enumerate(wanted)
        ]
        return await self._revise_many(actor, wishes)

    async def change_many_limits(
        self,
        actor: str,
        tenant_ids: Sequence[str] | None,
        changes: Mapping[str, object],
        *,
        model_id: str | None = None,
        if_versions: Mapping[str, int] | None = None,
    ) -> BulkChange:
        """Change the named fields only (of one model where `model_id` is given) of these tenants,
        None is all; with `if_versions` of those only limits of these versions. Raises NotFound for
        the first that does not exist, Conflict(limits_changed) naming those whose limits are of
        another version, Unprocessable naming the tenant; then nothing is changed."""
        revise = amendment(changes, model_id)
        if tenant_ids is None:
            return await self._revise_all(actor, revise)
        distinct = list(dict.fromkeys(tenant_ids))
        _check_count(len(distinct))
        seen = if_versions or {}
        return await self._revise_many(
            actor, [_Wish(each, revise, if_version=seen.get(each)) for each in distinct]
        )

    @verb
    async def _revise_all(self, actor: str, revise: Revision) -> BulkChange:
        async with self._changing(actor) as change:
            found = await _tenants(change.db, None)
            _check_count(len(found))
            wishes = [_Wish(tenant_id, revise) for tenant_id in found]
            return await _revised(change, wishes, found, now_ms=self._now_ms())

    @verb
    async def _revise_many(self, actor: str, wishes: Sequence[_Wish]) -> BulkChange:
        async with self._changing(actor) as change:
            found = await _tenants(change.db, [wish.tenant_id for wish in wishes])
            return await _revised(change, wishes, found, now_ms=self._now_ms())


def bulk_view(done: BulkChange) -> View:
    """What was done."""
    items = [
        {"tenant_id": tenant_id, "changed": tenant_id in done.changed, "limits": limits}
        for tenant_id, limits in done.limits.items()
    ]
    return {"change_id": done.id if done.changed else None, "items": items}


def _check_count(count: int) -> None:
    if not 1 <= count <= TENANTS_MAX:
        raise Unprocessable(f"changes: must be 1 to {TENANTS_MAX} tenants", param="changes")


async def _tenants(db: AsyncConnection, tenant_ids: Sequence[str] | None) -> dict[str, Tenant]:
    query = select(*TENANT_COLUMNS).order_by(tenant_table.c.id).limit(TENANTS_MAX + 1)
    if tenant_ids is not None:
        query = query.where(tenant_table.c.id.in_(tenant_ids))
    known: dict[str, Limits] = {}
    return {row.id: tenant_from(row, known) for row in await db.execute(query)}


async def _revised(
    change: Change, wishes: Sequence[_Wish], found: Mapping[str, Tenant], *, now_ms: int
) -> BulkChange:
    for wish in wishes:
        if wish.tenant_id not in found:
            raise _unknown(wish)
    _check_versions(wishes, found)
    reaches = await reaches_of(change.db, list(found.values()), now_ms=now_ms)
    limits: dict[str, TenantLimits] = {}
    rows: list[dict[str, object]] = []
    for number, wish in enumerate(wishes):
        if number % CHECKED_AT_ONCE == 0:
            await asyncio.sleep(0)
        before = tenant_limits(found[wish.tenant_id].limits)
        try:
            revised = wish.revise(found[wish.tenant_id].limits, reaches[wish.tenant_id])
        except Unprocessable as error:
            raise wish.refused(error) from error
        after = limits[wish.tenant_id] = tenant_limits(revised)
        if after != before:
            rows.append({"subject": wish.tenant_id, "revised": given_fields(revised)})
            await change.audit(
                "tenant.limits",
                "tenant",
                wish.tenant_id,
                before=limits_image(before),
                after=limits_image(after),
            )
    if rows:
        statement = update(tenant_table).where(tenant_table.c.id == bindparam("subject"))
        await change.db.execute(statement.values(limits=bindparam("revised")), rows)
    return BulkChange(change.id, limits, tuple(str(row["subject"]) for row in rows))


def _check_versions(wishes: Sequence[_Wish], found: Mapping[str, Tenant]) -> None:
    moved = [
        wish.tenant_id
        for wish in wishes
        if wish.if_version not in (None, found[wish.tenant_id].limits_version)
    ]
    if moved:
        more = f" and {len(moved) - NAMED_MAX} more" if len(moved) > NAMED_MAX else ""
        named = ", ".join(moved[:NAMED_MAX]) + more
        raise Conflict(f"the limits of {named} were changed meanwhile", code=LIMITS_CHANGED)


def _unknown(wish: _Wish) -> NotFound | Unprocessable:
    message = f"there is no tenant {wish.tenant_id}"
    if wish.item is None:
        return NotFound(message)
    field = f"{wish.item}.tenant_id"
    return Unprocessable(f"{field}: {message}", param=field)
