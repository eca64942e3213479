"""Tenants: found, made, and how one stands; suspended and resumed."""

from typing import Any

from litestar import get, post
from litestar.params import FromPath

from gateway.administration.audit import AuditFilters
from gateway.administration.views import audit_view, tenant_limits
from gateway.console import bulk_limits, tenant_profile
from gateway.console.access import page
from gateway.console.confirmed import confirmed_sentence
from gateway.console.forms import REFUSALS, Form
from gateway.console.key_pages import key_state
from gateway.console.limit_form import FIELD, GROUPS, limits_form, read_limits
from gateway.console.limit_pages import use_of
from gateway.console.lists import ROWS, given, paging
from gateway.console.money_forms import CURRENCIES
from gateway.console.visit import Answer, Here, Visit, known
from gateway.domain.permissions import Permission
from gateway.domain.tenant import Tenant, TenantLimits

_PATH = "/console/tenants"
KEYS_SHOWN, ENTRIES_SHOWN = 5, 6
_STATES = (("", "all"), ("active", "active"), ("suspended", "suspended"))
_USED = ("max_sequences", "tpm", "rpm", "max_queued", "monthly_budget")
"""Limits of which something is used up."""


@get("/tenants", opt=page(Permission.TENANTS_READ))
async def list_tenants(visit: Here) -> Answer:
    """Tenants by id: all, or those that are looked for."""
    asked = visit.query()
    filters = given(asked, ("search", "state"))
    cursor = asked.optional("cursor")
    found = await visit.parts.administration.list_tenants(
        ROWS,
        cursor,
        search=filters.get("search"),
        suspended={"active": False, "suspended": True}.get(filters.get("state", "")),
    )
    return visit.show(
        "tenants/list.html",
        asked=asked,
        filters=filters,
        rows=[(tenant, tenant_limits(tenant.limits)) for tenant in found.items],
        states=_STATES,
        **paging(_PATH, asked, found.next_cursor, filters),
    )


@get("/tenants/-/new", opt=page(Permission.TENANTS_WRITE))
async def show_new_tenant(visit: Here) -> Answer:
    """The form to make one."""
    form = limits_form(TenantLimits(), (), version=0)
    form.values |= {"currency": ["USD"], "time_zone": ["UTC"]}
    return _new_page(visit, form)


@post("/tenants", opt=page(Permission.TENANTS_WRITE))
async def create_tenant(visit: Here) -> Answer:
    """Make it."""
    form = await visit.form()
    form.need("id", "name", "currency", "time_zone")
    limits = read_limits(form, of_key=False)
    if not form.ok:
        return _new_page(visit, form, status=422)
    try:
        tenant = await visit.parts.administration.create_tenant(
            visit.actor,
            form.text("id"),
            form.text("name"),
            limits,
            currency=form.text("currency"),
            time_zone=form.text("time_zone"),
        )
    except REFUSALS as error:
        return _new_page(visit, form.refused(error), status=422)
    return visit.go(
        f"{_PATH}/{tenant.id}",
        said=f"{tenant.name} is there. Make a key, and it can send requests.",
    )


@get("/tenants/{tenant_id:str}", opt=page(Permission.TENANTS_READ))
async def show_tenant(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """One tenant: state, use against limits, keys, billing, what was changed last."""
    verbs = visit.parts.administration
    tenant = await verbs.get_tenant(tenant_id)
    keys = await verbs.list_keys(tenant_id, KEYS_SHOWN) if visit.may(Permission.KEYS_READ) else None
    entries: list[dict[str, Any]] | None = None
    if visit.may(Permission.AUDIT_READ):
        filters = AuditFilters(tenant_id=tenant_id)
        found = await known(verbs.list_audit(ENTRIES_SHOWN, filters=filters))
        money = visit.may(Permission.MONEY_READ)
        entries = None if found is None else [audit_view(each, money=money) for each in found.items]
    now_ms = visit.now_ms
    return visit.show(
        "tenants/page.html",
        keys=None if keys is None else [(key, key_state(key, now_ms)) for key in keys.items],
        more_keys=keys is not None and keys.next_cursor is not None,
        entries=entries,
        plan=visit.parts.directory.price_book().plan_at(tenant_id, now_ms),
        **await _now(visit, tenant),
    )


@get("/tenants/{tenant_id:str}/now", opt=page(Permission.TENANTS_READ))
async def show_tenant_now(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """The part of it that reads itself anew."""
    tenant = await visit.parts.administration.get_tenant(tenant_id)
    return visit.fragment("tenants/_now.html", **await _now(visit, tenant))


@post("/tenants/{tenant_id:str}/suspend", opt=page(Permission.TENANTS_WRITE))
async def suspend_tenant(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """Refuse its keys, end what it runs."""
    return await _suspend(visit, tenant_id, suspended=True)


@post("/tenants/{tenant_id:str}/resume", opt=page(Permission.TENANTS_WRITE))
async def resume_tenant(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """Let its keys work again."""
    return await _suspend(visit, tenant_id, suspended=False)


async def _suspend(visit: Visit, tenant_id: str, *, suspended: bool) -> Answer:
    verbs = visit.parts.administration
    tenant = await verbs.update_tenant(visit.actor, tenant_id, suspended=suspended)
    found = await verbs.confirm_tenant(tenant_id)
    what = "is suspended: its keys are refused" if suspended else "is active: its keys work again"
    return visit.go(
        f"{_PATH}/{tenant_id}", said=f"{tenant.name} {what}. {confirmed_sentence(found)}"
    )


async def _now(visit: Visit, tenant: Tenant) -> dict[str, Any]:
    use = await use_of(visit, tenant)
    rows = [row for row in use["limits"] if row["limit"] in _USED]
    of_all = {row["limit"]: row for row in rows if row["model"] is None}
    return {
        "tenant": tenant,
        "use": of_all,
        "of_models": [row for row in rows if row["model"] is not None],
        "degraded": use["degraded"],
        "field_of": FIELD,
    }


def _new_page(visit: Visit, form: Form, *, status: int = 200) -> Answer:
    return visit.show(
        "tenants/new.html", status=status, form=form, currencies=CURRENCIES, groups=GROUPS
    )


PAGES = (
    list_tenants,
    show_new_tenant,
    create_tenant,
    show_tenant,
    show_tenant_now,
    suspend_tenant,
    resume_tenant,
    *tenant_profile.PAGES,
    *bulk_limits.PAGES,
)
