"""A tenant's name, currency, time zone, and whom its invoices are made out to."""

from litestar import get, post
from litestar.params import FromPath

from gateway.console.access import page
from gateway.console.forms import REFUSALS, Form
from gateway.console.money_forms import CURRENCIES
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.domain.tenant import BillingProfile, Tenant
from gateway.http.admin_bodies import body_from

_PREFIX = "billing_profile"
_TEXTS = (
    "legal_name",
    "email",
    "country",
    "tax_id",
    "tax_rate",
    "tax_name",
    "tax_note",
    "reference",
)
_OWN = ("name", "currency", "time_zone")
_NAMES = {f"{_PREFIX}.{name}": name for name in (*_TEXTS, "payment_terms_days", "address")}


@get("/tenants/{tenant_id:str}/profile", opt=page(Permission.TENANTS_WRITE))
async def show_profile(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """The form, as it is stored."""
    tenant = await visit.parts.administration.get_tenant(tenant_id)
    profile = tenant.billing_profile
    form = Form.filled(
        {name: getattr(tenant, name) for name in _OWN}
        | {name: getattr(profile, name) for name in _TEXTS}
        | {
            "payment_terms_days": profile.payment_terms_days,
            "address": "\n".join(profile.address),
        }
    )
    return _page(visit, tenant, form)


@post("/tenants/{tenant_id:str}/profile", opt=page(Permission.TENANTS_WRITE))
async def save_profile(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """Save it. Invoices that are issued stay as they are."""
    tenant = await visit.parts.administration.get_tenant(tenant_id)
    form = await visit.form()
    form.need(*_OWN)
    terms_days = form.whole("payment_terms_days")
    if not form.ok:
        return _page(visit, tenant, form, status=422)
    fields: dict[str, object] = {name: form.optional(name) for name in _TEXTS}
    fields |= {"payment_terms_days": terms_days, "address": form.text("address").splitlines()}
    try:
        profile = body_from(fields, BillingProfile, prefix=_PREFIX)
        await visit.parts.administration.update_tenant(
            visit.actor,
            tenant_id,
            name=form.text("name"),
            currency=form.text("currency"),
            time_zone=form.text("time_zone"),
            billing_profile=profile,
        )
    except REFUSALS as error:
        return _page(visit, tenant, form.refused(error, _NAMES), status=422)
    return visit.go(f"/console/tenants/{tenant_id}", said=f"{form.text('name')} is saved.")


def _page(visit: Visit, tenant: Tenant, form: Form, *, status: int = 200) -> Answer:
    return visit.show(
        "tenants/profile.html", status=status, tenant=tenant, form=form, currencies=CURRENCIES
    )


PAGES = (show_profile, save_profile)
