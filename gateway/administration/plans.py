"""Which plan a tenant is on: whose prices it pays where it has none of its own. Added, never
changed, as prices are."""

from dataclasses import dataclass

from sqlalchemy import insert, select

from billing.domain.price_book import Membership
from billing.postgres.price_tables import plan_member
from billing.postgres.price_tables import price as price_table
from billing.postgres.prices import MEMBER_COLUMNS, instant_of, member_from
from gateway.adapters.price_past import use_no_number_again
from gateway.administration.checks import EXPIRY_MAX_MS, check_tenant_id
from gateway.administration.images import plan_image
from gateway.administration.pages import LIMIT_DEFAULT, Page, check_page_limit, entry_id, page_of
from gateway.administration.price_desk import now_ms_of
from gateway.administration.prices import PriceVerbs
from gateway.administration.store import verb
from gateway.administration.tenants import named_tenant
from gateway.domain.instants import shown
from gateway.domain.price_news import LEAD_MS, WrittenPrice
from gateway.errors import Conflict, Unprocessable


@dataclass(frozen=True)
class _Written:
    member: Membership
    news: WrittenPrice | None


class PlanVerbs(PriceVerbs):
    """The verbs on plans."""

    async def set_plan(
        self, actor: str, tenant_id: str, plan: str | None, *, effective_from_ms: int | None = None
    ) -> Membership:
        """Put a tenant on a plan from then on, or with None on none. 2 s from now, or later where
        an instant is given. What it is on at that instant already is returned, and nothing is
        written; another plan from the same instant is a Conflict."""
        written = await self._set_plan(actor, tenant_id, plan, effective_from_ms)
        await self._tell([] if written.news is None else [written.news])
        return written.member

    @verb
    async def _set_plan(
        self, actor: str, tenant_id: str, plan: str | None, effective_from_ms: int | None
    ) -> _Written:
        check_tenant_id(tenant_id, field="tenant_id")
        in_use = await self._numbers_in_use()
        async with self._changing(actor) as change:
            await use_no_number_again(change.db, in_use)
            await named_tenant(change.db, tenant_id)
            soon_ms = await now_ms_of(change.db) + LEAD_MS
            begins_ms = soon_ms if effective_from_ms is None else effective_from_ms
            found = await change.db.execute(
                select(*MEMBER_COLUMNS)
                .where(
                    plan_member.c.tenant_id == tenant_id,
                    plan_member.c.effective_from <= instant_of(min(begins_ms, EXPIRY_MAX_MS)),
                )
                .order_by(plan_member.c.effective_from.desc())
                .limit(1)
            )
            row = found.one_or_none()
            before = None if row is None else member_from(row)
            none = Membership(tenant_id=tenant_id, plan=None, effective_from_ms=begins_ms)
            if (None if before is None else before.plan) == plan:
                return _Written(before or none, None)
            if before is not None and before.effective_from_ms == begins_ms:
                raise Conflict(f"{tenant_id} begins another plan at {shown(begins_ms)} already")
            if not soon_ms <= begins_ms <= EXPIRY_MAX_MS:
                raise Unprocessable(
                    f"effective_from: must be {LEAD_MS // 1000} s from now or later, so not before "
                    f"{shown(soon_ms)}",
                    param="effective_from",
                )
            if plan is not None:
                priced = select(price_table.c.id).where(price_table.c.plan == plan).limit(1)
                if (await change.db.execute(priced)).one_or_none() is None:
                    raise Unprocessable(f"plan: no price is of a plan {plan}", param="plan")
            added = (
                await change.db.execute(
                    insert(plan_member)
                    .values(tenant_id=tenant_id, plan=plan, effective_from=instant_of(begins_ms))
                    .returning(*MEMBER_COLUMNS)
                )
            ).one()
            after = member_from(added)
            await change.audit(
                "tenant.plan",
                "tenant",
                tenant_id,
                before=None if before is None else plan_image(before),
                after=plan_image(after),
            )
        return _Written(after, WrittenPrice(added.changed, begins_ms))

    @verb
    async def list_plans(
        self, limit: int = LIMIT_DEFAULT, cursor: str | None = None, *, tenant_id: str | None = None
    ) -> Page[Membership]:
        """Who is on which plan from when on, the latest written first."""
        check_page_limit(limit)
        query = select(*MEMBER_COLUMNS).order_by(plan_member.c.id.desc()).limit(limit + 1)
        if tenant_id is not None:
            query = query.where(plan_member.c.tenant_id == tenant_id)
        if cursor is not None:
            query = query.where(plan_member.c.id < entry_id(cursor))
        async with self._reading() as db:
            rows = await db.execute(query)
        return page_of([(str(row.id), member_from(row)) for row in rows], limit)
