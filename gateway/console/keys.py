"""API keys of a tenant, for those who run Weir."""

from litestar import get, post
from litestar.params import FromPath

from gateway.console import key_pages
from gateway.console.access import page
from gateway.console.key_pages import KeysOf, key_of, limits_of_key
from gateway.console.limit_pages import save_limits_of, show_effect_of, show_limits_of
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission

_KEYS = "/tenants/{tenant_id:str}/keys"
_KEY = _KEYS + "/{key_id:str}"
_READ, _WRITE = page(Permission.KEYS_READ), page(Permission.KEYS_WRITE)


@get(_KEYS, opt=_READ)
async def list_keys(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """The keys of one tenant."""
    return await key_pages.show_keys(visit, await _keys_of(visit, tenant_id))


@get(_KEYS + "/new", opt=_WRITE)
async def show_new_key(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """The form to make one."""
    return await key_pages.show_new_key(visit, await _keys_of(visit, tenant_id))


@post(_KEYS, opt=_WRITE)
async def create_key(visit: Here, tenant_id: FromPath[str]) -> Answer:
    """Make it, and show its secret."""
    return await key_pages.create_key(visit, await _keys_of(visit, tenant_id))


@get(_KEY, opt=_READ)
async def show_key(visit: Here, tenant_id: FromPath[str], key_id: FromPath[str]) -> Answer:
    """One key."""
    keys = await _keys_of(visit, tenant_id)
    return await key_pages.show_key(visit, keys, await key_of(visit, keys, key_id))


@post(_KEY + "/rotate", opt=_WRITE)
async def rotate_key(visit: Here, tenant_id: FromPath[str], key_id: FromPath[str]) -> Answer:
    """Replace it, and show the new one's secret."""
    keys = await _keys_of(visit, tenant_id)
    return await key_pages.rotate_key(visit, keys, await key_of(visit, keys, key_id))


@post(_KEY + "/revoke", opt=_WRITE)
async def revoke_key(visit: Here, tenant_id: FromPath[str], key_id: FromPath[str]) -> Answer:
    """Revoke it for good."""
    keys = await _keys_of(visit, tenant_id)
    return await key_pages.revoke_key(visit, keys, await key_of(visit, keys, key_id))


@get(_KEY + "/limits", opt=_READ)
async def show_key_limits(visit: Here, tenant_id: FromPath[str], key_id: FromPath[str]) -> Answer:
    """Its own limits."""
    keys = await _keys_of(visit, tenant_id)
    return await show_limits_of(visit, limits_of_key(keys, await key_of(visit, keys, key_id)))


@post(_KEY + "/limits/effect", opt=_WRITE)
async def show_key_effect(visit: Here, tenant_id: FromPath[str], key_id: FromPath[str]) -> Answer:
    """What others would do; nothing is saved."""
    keys = await _keys_of(visit, tenant_id)
    return await show_effect_of(visit, limits_of_key(keys, await key_of(visit, keys, key_id)))


@post(_KEY + "/limits", opt=_WRITE)
async def save_key_limits(visit: Here, tenant_id: FromPath[str], key_id: FromPath[str]) -> Answer:
    """Save them."""
    keys = await _keys_of(visit, tenant_id)
    return await save_limits_of(visit, limits_of_key(keys, await key_of(visit, keys, key_id)))


async def _keys_of(visit: Visit, tenant_id: str) -> KeysOf:
    tenant = await visit.parts.administration.get_tenant(tenant_id)
    page_of_tenant = f"/console/tenants/{tenant.id}"
    return KeysOf(
        tenant=tenant,
        path=f"{page_of_tenant}/keys",
        crumbs=(("Tenants", "/console/tenants"), (tenant.name, page_of_tenant)),
        may_write=visit.may(Permission.KEYS_WRITE),
    )


PAGES = (
    list_keys,
    show_new_key,
    create_key,
    show_key,
    rotate_key,
    revoke_key,
    show_key_limits,
    show_key_effect,
    save_key_limits,
)
