"""One limit of many tenants: chosen on the list, shown before and after, saved for all or none."""

from typing import Any

from litestar import get, post

from gateway.administration.views import tenant_limits
from gateway.console.access import page
from gateway.console.confirmed import confirmed_sentence
from gateway.console.forms import Form
from gateway.console.limit_form import FIELDS, MODEL_FIELDS, NO_LIMIT
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.domain.tenant import ModelLimits, Tenant
from gateway.errors import Conflict, NotFound, Unprocessable

_PATH = "/console/tenants"
TENANTS = "tenant"
SEEN = "seen"
"""The version of each tenant's limits that was shown, as `id:version`."""
SETTABLE = {each.name: each for each in FIELDS if each.kind != "choice"}
_OF_MODELS = frozenset(each.name for each in MODEL_FIELDS)


@get("/tenants/-/limits", opt=page(Permission.TENANTS_WRITE))
async def show_bulk(visit: Here) -> Answer:
    """The tenants that were ticked, and the form."""
    form = visit.query()
    form.values.setdefault("limit", ["max_sequences"])
    if not form.all(TENANTS):
        return visit.go(_PATH, said="Tick the tenants first.", failed=True)
    return _page(visit, form)


@post("/tenants/-/limits/effect", opt=page(Permission.TENANTS_WRITE))
async def show_bulk_effect(visit: Here) -> Answer:
    """The limit of each, now and then; nothing is saved."""
    form = await visit.form()
    value = _value(form)
    if not form.ok:
        return _page(visit, form, status=422)
    return _page(visit, form, then=value, is_shown=True)


@post("/tenants/-/limits", opt=page(Permission.TENANTS_WRITE))
async def save_bulk(visit: Here) -> Answer:
    """Save it for all of them; where any is refused, or was changed since it was shown, for
    none."""
    form = await visit.form()
    value = _value(form)
    if not form.ok:
        return _page(visit, form, status=422)
    verbs, name = visit.parts.administration, form.text("limit")
    try:
        done = await verbs.change_many_limits(
            visit.actor,
            form.all(TENANTS),
            {name: value},
            model_id=form.optional("model"),
            if_versions=_seen(form),
        )
    except Conflict as error:
        form.errors[""] = f"Nothing was saved: {error.message}. Below is how they are now."
        return _page(visit, form, status=409, then=value, is_shown=True)
    except (Unprocessable, NotFound) as error:
        form.errors[""] = f"Nothing was saved: {error.message}"
        return _page(visit, form, status=422)
    found = await verbs.confirm_tenant(done.latest)
    count, same = len(done.changed), len(done.limits) - len(done.changed)
    also = f" {same} had it already." if same else ""
    of_them = "one tenant" if count == 1 else f"{count} tenants"
    said = f"{SETTABLE[name].label} is saved for {of_them}.{also} {confirmed_sentence(found)}"
    return visit.go(_PATH, said=said)


def _seen(form: Form) -> dict[str, int]:
    pairs = (each.rpartition(":") for each in form.all(SEEN))
    return {name: int(version) for name, _, version in pairs if version.isdecimal()}


def _value(form: Form) -> object:
    """What the limit shall be; None is no limit. What cannot be is noted at its field."""
    field = SETTABLE.get(form.text("limit"))
    if field is None:
        form.errors["limit"] = "must be one of the list"
        return None
    if form.optional("model") is not None and field.name not in _OF_MODELS:
        form.errors["model"] = f"{field.label} is the same for all models"
    if not form.all(TENANTS):
        form.errors[""] = "No tenant is chosen."
    value = form.whole("value") if field.kind == "whole" else form.optional("value")
    without = form.flag(NO_LIMIT + "value")
    if "value" not in form.errors:
        if without and value is not None:
            form.errors["value"] = "a number, or “No limit”: not both"
        elif not without and value is None:
            form.errors["value"] = "say a number, or tick “No limit”"
        elif without and not field.none:
            form.errors["value"] = f"{field.label}: there is always one"
    return value


def _page(
    visit: Visit, form: Form, *, status: int = 200, then: object = None, is_shown: bool = False
) -> Answer:
    directory = visit.parts.directory
    chosen = list(dict.fromkeys(form.all(TENANTS)))
    found = [each for each in map(directory.tenant, chosen) if each is not None]
    name, model_id = form.text("limit"), form.optional("model")
    return visit.show(
        "tenants/bulk.html",
        status=status,
        form=form,
        chosen=chosen,
        rows=[_row(tenant, name, model_id) for tenant in found],
        then=then,
        is_shown=is_shown,
        field=SETTABLE.get(name),
        limits=[(each.name, each.label) for each in SETTABLE.values()],
        models=[("", "all models together"), *((m.id, m.id) for m in directory.models())],
    )


def _row(tenant: Tenant, name: str, model_id: str | None) -> dict[str, Any]:
    limits = tenant_limits(tenant.limits)
    source = limits if model_id is None else limits.models.get(model_id, ModelLimits())
    return {"tenant": tenant, "now": getattr(source, name, None)}


PAGES = (show_bulk, show_bulk_effect, save_bulk)
