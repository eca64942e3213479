"""API keys of a tenant as pages: listed, made, shown once, rotated, revoked, limited.

Whoever runs Weir sees them below a tenant's page, its own people below their own: the same pages
with another `KeysOf`.
"""

import secrets
from dataclasses import dataclass
from typing import NamedTuple

from gateway.administration.keys import MADE_ALREADY, key_id_of_form
from gateway.console.confirmed import confirmed_sentence
from gateway.console.forms import REFUSALS, Form
from gateway.console.limit_form import FIELD, GROUPS, limits_form, read_limits
from gateway.console.limit_pages import LimitsOf, use_of
from gateway.console.lists import ROWS, paging
from gateway.console.visit import Answer, Visit
from gateway.domain.instants import instant_of
from gateway.domain.tenant import ApiKey, Limits, RequestClass, Tenant
from gateway.errors import Conflict, NotFound, Unprocessable

ONCE = "once"
"""What each form that is shown has for itself, so that it makes one key."""
_UNITS_MS = {"minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
_BOXES = {"models": "models"}
"""Fields that nothing is sent of where none of their boxes is ticked."""
_CLASSES = (
    (RequestClass.INTERACTIVE.value, "interactive: somebody waits for it; goes first"),
    (RequestClass.BATCH.value, "batch: goes when no interactive request waits"),
)


@dataclass(frozen=True)
class KeysOf:
    """Whose keys, and where their pages are. `within_tenant` holds limits to the tenant's own."""

    tenant: Tenant
    path: str
    crumbs: tuple[tuple[str, str], ...]
    may_write: bool
    within_tenant: bool = False

    def path_of(self, key: ApiKey) -> str:
        """The page of one key."""
        return f"{self.path}/{key.id}"


class State(NamedTuple):
    """How a key stands, and the kind of badge that says it."""

    text: str
    kind: str
    works: bool


def key_state(key: ApiKey, now_ms: int) -> State:
    """Revoked, expired, replaced and still working, or active."""
    if key.revoked_at_ms is not None:
        return State("revoked", "bad", False)
    if key.expires_at_ms is not None and key.expires_at_ms <= now_ms:
        return State("replaced" if key.rotated_to else "expired", "plain", False)
    if key.rotated_to is not None:
        return State("being replaced", "warn", True)
    return State("active", "good", True)


async def key_of(visit: Visit, keys: KeysOf, key_id: str) -> ApiKey:
    """A key of that tenant. Raises NotFound, in the same words for another's and for none."""
    key = await visit.parts.administration.get_key(key_id)
    if key.tenant_id != keys.tenant.id:
        raise NotFound(f"there is no key {key_id}")
    return key


def limits_of_key(keys: KeysOf, key: ApiKey) -> LimitsOf:
    """For the pages of its limits."""
    return LimitsOf(
        tenant=keys.tenant,
        key=key,
        path=f"{keys.path_of(key)}/limits",
        back=keys.path_of(key),
        crumbs=(*keys.crumbs, ("Keys", keys.path), (key.name, keys.path_of(key))),
        may_write=keys.may_write,
        within_tenant=keys.within_tenant,
    )


async def show_keys(visit: Visit, keys: KeysOf) -> Answer:
    """Keys by id, a page at a time."""
    query = visit.query()
    found = await visit.parts.administration.list_keys(
        keys.tenant.id, ROWS, query.optional("cursor")
    )
    return visit.show(
        "keys/list.html",
        keys=keys,
        rows=[(key, key_state(key, visit.now_ms)) for key in found.items],
        **paging(keys.path, query, found.next_cursor),
    )


async def show_new_key(visit: Visit, keys: KeysOf) -> Answer:
    """The form to make one."""
    form = limits_form(Limits(), (), version=0)
    form.values["class"] = [RequestClass.INTERACTIVE.value]
    return _new_page(visit, keys, form)


async def create_key(visit: Visit, keys: KeysOf) -> Answer:
    """Make it, and show its secret once: in this answer and nowhere else. A page that is reloaded
    sends its form again, which makes none."""
    form = await visit.form()
    form.need("name")
    limits = read_limits(form, of_key=True)
    expires_at_ms = form.instant_ms("expires_at")
    if not form.ok:
        return _new_page(visit, keys, form, status=422)
    try:
        key, secret = await visit.parts.administration.create_key(
            visit.actor,
            keys.tenant.id,
            form.text("name"),
            form.text("class"),
            expires_at_ms=expires_at_ms,
            models=form.all("models") or None,
            ip_allow=form.text("ip_allow").replace(",", " ").split() or None,
            limits=limits,
            within_tenant=keys.within_tenant,
            form=form.optional(ONCE),
        )
    except REFUSALS as error:
        if error.code == MADE_ALREADY:
            return await _made_already(visit, keys, form)
        return _new_page(visit, keys, form.refused(error, _BOXES), status=422)
    said = confirmed_sentence(await visit.parts.administration.confirm_key(key.id))
    return visit.show(
        "keys/secret.html", keys=keys, key=key, secret=secret, old=None, has_grace=False, said=said
    )


async def show_key(visit: Visit, keys: KeysOf, key: ApiKey) -> Answer:
    """One key: what it may, what is used of its own limits, and what can be done with it."""
    return await _key_page(visit, keys, key, Form.filled({"grace": 1, "unit": "hours"}))


async def rotate_key(visit: Visit, keys: KeysOf, key: ApiKey) -> Answer:
    """Replace it, and show the new one's secret once."""
    form = await visit.form()
    grace = form.whole("grace")
    if grace is None and form.ok:
        form.errors["grace"] = "must not be empty; 0 refuses the old key at once"
    unit_ms = _UNITS_MS.get(form.text("unit"))
    if grace is None or unit_ms is None:
        return await _key_page(visit, keys, key, form, status=422)
    verbs = visit.parts.administration
    try:
        new, secret = await verbs.rotate_key(visit.actor, key.id, grace_ms=grace * unit_ms)
    except Unprocessable:
        form.errors["grace"] = "must be at most 90 days"
        return await _key_page(visit, keys, key, form, status=422)
    except Conflict as error:
        form.errors[""] = error.message
        return await _key_page(visit, keys, key, form, status=409)
    old = await verbs.get_key(key.id)
    said = confirmed_sentence(await verbs.confirm_key(key.id))
    return visit.show(
        "keys/secret.html",
        keys=keys,
        key=new,
        secret=secret,
        old=old,
        has_grace=bool(grace),
        said=said,
    )


async def revoke_key(visit: Visit, keys: KeysOf, key: ApiKey) -> Answer:
    """Revoke it for good, and say which gateways refuse it already."""
    verbs = visit.parts.administration
    await verbs.revoke_key(visit.actor, key.id)
    found = await verbs.confirm_key(key.id)
    said = f"The key {key.name} (…{key.secret_hint}) is revoked. {confirmed_sentence(found)}"
    return visit.go(keys.path_of(key), said=said)


async def _made_already(visit: Visit, keys: KeysOf, form: Form) -> Answer:
    made = key_id_of_form(keys.tenant.id, form.text(ONCE))
    key = await visit.parts.administration.get_key(made)
    said = (
        f"The key {key.name} was made already, and none was made now. Its secret was shown then"
        " and is not shown again; where nobody has kept it, replace the key."
    )
    return visit.go(keys.path_of(key), said=said, failed=True)


def _new_page(visit: Visit, keys: KeysOf, form: Form, *, status: int = 200) -> Answer:
    return visit.show(
        "keys/new.html",
        status=status,
        keys=keys,
        form=form,
        once=(ONCE, secrets.token_urlsafe(16)),
        classes=_CLASSES,
        models=sorted(model.id for model in visit.parts.directory.models()),
        groups=GROUPS,
    )


async def _key_page(
    visit: Visit, keys: KeysOf, key: ApiKey, form: Form, *, status: int = 200
) -> Answer:
    return visit.show(
        "keys/page.html",
        status=status,
        keys=keys,
        key=key,
        state=key_state(key, visit.now_ms),
        use=await use_of(visit, keys.tenant, key),
        field_of=FIELD,
        form=form,
        units=[(name, name) for name in _UNITS_MS],
        created_at=instant_of(key.created_at_ms),
        expires_at=instant_of(key.expires_at_ms),
        revoked_at=instant_of(key.revoked_at_ms),
    )
