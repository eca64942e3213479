"""The page of limits, a tenant's or a key's: edited, what they would do shown, and saved over those
that were seen and no others."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from gateway.administration.audit import AuditFilters
from gateway.administration.limit_preview import no_change
from gateway.administration.limits import LIMITS_CHANGED
from gateway.administration.views import audit_view, tenant_limits
from gateway.console.confirmed import confirmed_sentence
from gateway.console.forms import Form
from gateway.console.limit_form import (
    FIELD,
    GROUPS,
    MODEL,
    MODEL_FIELDS,
    VERSION,
    limits_form,
    only_models,
    read_limits,
)
from gateway.console.visit import Answer, Visit, known
from gateway.domain.limit_effect import BUDGET, effects
from gateway.domain.permissions import Permission
from gateway.domain.tenant import ApiKey, Limits, Tenant
from gateway.errors import Conflict, Unprocessable
from gateway.serving.limit_effect import KeyChange
from gateway.serving.limit_effect_now import effect_now, key_effect_now, use_now

MODELS_SHOWN_MAX = 50
"""Models that nothing narrows get fields of their own up to so many."""
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class LimitsOf:
    """Whose limits a page shows, and where it is. Forms go to `path` and `path`/effect; what is
    saved leads to `back`. `within_tenant` holds a key's limits to its tenant's."""

    tenant: Tenant
    path: str
    back: str
    crumbs: tuple[tuple[str, str], ...]
    may_write: bool
    key: ApiKey | None = None
    within_tenant: bool = False

    @property
    def name(self) -> str:
        """Of the tenant or the key, for people."""
        return self.tenant.name if self.key is None else self.key.name

    @property
    def limits(self) -> Limits:
        """As they are stored; of a tenant with its defaults."""
        return tenant_limits(self.tenant.limits) if self.key is None else self.key.limits

    @property
    def version(self) -> int:
        """Of the limits."""
        subject = self.tenant if self.key is None else self.key
        return subject.limits_version


async def show_limits_of(visit: Visit, subject: LimitsOf) -> Answer:
    """The form, as they are stored."""
    form = limits_form(subject.limits, _models(visit, subject), version=subject.version)
    return await _page(visit, subject, form)


async def show_effect_of(visit: Visit, subject: LimitsOf) -> Answer:
    """What the limits of the form would do, and a button that saves exactly these."""
    form = await _sent(visit, subject)
    wanted = read_limits(form, of_key=subject.key is not None)
    if not form.ok:
        return await _page(visit, subject, form, status=422)
    if form.text(VERSION) != str(subject.version):
        return await _conflict_page(visit, subject, form, wanted)
    try:
        effect = await _effect(visit, subject, wanted)
    except Unprocessable as error:
        return await _page(visit, subject, form.refused(error), status=422)
    return await _page(visit, subject, form, effect=effect)


async def save_limits_of(visit: Visit, subject: LimitsOf) -> Answer:
    """Save them, and say which gateways go by them. Where others were saved meanwhile nothing is,
    and the page shows the difference."""
    form = await _sent(visit, subject)
    wanted = read_limits(form, of_key=subject.key is not None)
    if not form.ok or not form.text(VERSION).isdigit():
        return await _page(visit, subject, form, status=422)
    version = int(form.text(VERSION))
    verbs = visit.parts.administration
    try:
        if subject.key is None:
            tenant_id = subject.tenant.id
            await verbs.put_tenant_limits(visit.actor, tenant_id, wanted, if_version=version)
            found = await verbs.confirm_tenant(tenant_id)
        else:
            await verbs.put_key_limits(
                visit.actor,
                subject.key.id,
                wanted,
                within_tenant=subject.within_tenant,
                if_version=version,
            )
            found = await verbs.confirm_key(subject.key.id)
    except Unprocessable as error:
        return await _page(visit, subject, form.refused(error), status=422)
    except Conflict as error:
        if error.code != LIMITS_CHANGED:
            raise
        return await _conflict_page(visit, subject, form, wanted)
    said = f"The limits of {subject.name} are saved. {confirmed_sentence(found)}"
    return visit.go(subject.back, said=said)


async def use_of(visit: Visit, tenant: Tenant, key: ApiKey | None = None) -> dict[str, Any]:
    """What is used of each limit now: `limits`, as rows of an effect that changes nothing, and what
    is `degraded`."""
    live = visit.parts.live
    if key is None:
        found = await use_now(no_change(tenant), live)
    else:
        found = await key_effect_now(KeyChange(tenant, key, key.limits, key.limits), live)
    return {**found, "limits": _without_money(visit, found["limits"])}


async def _sent(visit: Visit, subject: LimitsOf) -> Form:
    """The form, of models that there are: whatever else was sent would be drawn again."""
    form = await visit.form()
    there = {model.id for model in visit.parts.directory.models()} | subject.limits.models.keys()
    return only_models(form, there)


async def _effect(visit: Visit, subject: LimitsOf, wanted: Mapping[str, object]) -> dict[str, Any]:
    verbs, live = visit.parts.administration, visit.parts.live
    if subject.key is None:
        change = await verbs.preview_tenant_limits(subject.tenant.id, wanted)
        found = await effect_now(change, live)
    else:
        key_change = await verbs.preview_key_limits(
            subject.key.id, wanted, within_tenant=subject.within_tenant
        )
        found = {"promised": {}, "pool": None, **await key_effect_now(key_change, live)}
    return {**found, "limits": _without_money(visit, found["limits"])}


def _without_money(visit: Visit, rows: object) -> Rows:
    """Rows of an effect; what was spent only for those who may see money."""
    assert isinstance(rows, list)  # noqa: S101 - an effect has them
    if visit.may(Permission.INVOICES_READ):
        return rows
    hidden = dict.fromkeys(("used", "over_by", "binds_at_once"))
    return [{**row, **hidden} if row["limit"] == BUDGET else row for row in rows]


async def _conflict_page(
    visit: Visit, subject: LimitsOf, form: Form, wanted: Mapping[str, object]
) -> Answer:
    """What is stored now beside what was typed. Whoever then goes on has seen both: the form takes
    the version that it shows."""
    verbs = visit.parts.administration
    if subject.key is None:
        tenant = await verbs.get_tenant(subject.tenant.id)
        subject = replace(subject, tenant=tenant)
        action, subject_id = "tenant.limits", tenant.id
    else:
        key = await verbs.get_key(subject.key.id)
        subject = replace(subject, key=key)
        action, subject_id = "key.limits", key.id
    try:
        yours = msgspec.convert(wanted, type(subject.limits))
    except msgspec.ValidationError as error:
        form.errors[""] = str(error)
        yours = subject.limits
    rows = effects(subject.limits, yours, {}, currency=subject.tenant.currency)
    differ = [row for row in msgspec.to_builtins(rows) if row["now"] != row["then"]]
    form.values[VERSION] = [str(subject.version)]
    who = None
    if visit.may(Permission.AUDIT_READ):
        filters = AuditFilters(subject_id=subject_id, action=action)
        entries = await known(verbs.list_audit(1, filters=filters))
        who = audit_view(entries.items[0]) if entries is not None and entries.items else None
    return await _page(visit, subject, form, status=409, conflict={"rows": differ, "who": who})


async def _page(
    visit: Visit,
    subject: LimitsOf,
    form: Form,
    *,
    status: int = 200,
    effect: dict[str, Any] | None = None,
    conflict: dict[str, Any] | None = None,
) -> Answer:
    hidden = [(name, value) for name, values in form.values.items() for value in values]
    return visit.show(
        "limits/page.html",
        status=status,
        subject=subject,
        form=form,
        groups=GROUPS,
        model_fields=MODEL_FIELDS,
        models=form.all(MODEL),
        field_of=FIELD,
        effect=effect,
        conflict=conflict,
        hidden=hidden,
    )


def _models(visit: Visit, subject: LimitsOf) -> list[str]:
    names = sorted(model.id for model in visit.parts.directory.models())
    if subject.key is not None and subject.key.models is not None:
        names = [name for name in names if name in subject.key.models]
    return names[:MODELS_SHOWN_MAX]
