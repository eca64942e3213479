"""A tenant's own API keys: the pages of `key_pages`, held to its own and to its own limits."""

from litestar import get, post
from litestar.params import FromPath

from gateway.console import key_pages
from gateway.console.access import own_page
from gateway.console.key_pages import KeysOf, key_of, limits_of_key
from gateway.console.limit_pages import LimitsOf, save_limits_of, show_effect_of, show_limits_of
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.domain.tenant import ApiKey
from gateway.errors import NotFound
from gateway.http.guards import nothing_there

_KEYS = "/own/keys"
_KEY = _KEYS + "/{key_id:str}"
_READ, _WRITE = own_page(Permission.KEYS_READ), own_page(Permission.KEYS_WRITE)


@get(_KEYS, opt=_READ)
async def list_own_keys(visit: Here) -> Answer:
    """The tenant's keys."""
    return await key_pages.show_keys(visit, await _keys(visit))


@get(_KEYS + "/new", opt=_WRITE)
async def show_new_own_key(visit: Here) -> Answer:
    """The form to make one."""
    return await key_pages.show_new_key(visit, await _keys(visit))


@post(_KEYS, opt=_WRITE)
async def create_own_key(visit: Here) -> Answer:
    """Make it, and show its secret."""
    return await key_pages.create_key(visit, await _keys(visit))


@get(_KEY, opt=_READ)
async def show_own_key(visit: Here, key_id: FromPath[str]) -> Answer:
    """One key."""
    return await key_pages.show_key(visit, *await _key(visit, key_id))


@post(_KEY + "/rotate", opt=_WRITE)
async def rotate_own_key(visit: Here, key_id: FromPath[str]) -> Answer:
    """Replace it, and show the new one's secret."""
    return await key_pages.rotate_key(visit, *await _key(visit, key_id))


@post(_KEY + "/revoke", opt=_WRITE)
async def revoke_own_key(visit: Here, key_id: FromPath[str]) -> Answer:
    """Revoke it for good."""
    return await key_pages.revoke_key(visit, *await _key(visit, key_id))


@get(_KEY + "/limits", opt=_READ)
async def show_own_key_limits(visit: Here, key_id: FromPath[str]) -> Answer:
    """Its own limits."""
    return await show_limits_of(visit, await _limits(visit, key_id))


@post(_KEY + "/limits/effect", opt=_WRITE)
async def show_own_key_effect(visit: Here, key_id: FromPath[str]) -> Answer:
    """What others would do; nothing is saved."""
    return await show_effect_of(visit, await _limits(visit, key_id))


@post(_KEY + "/limits", opt=_WRITE)
async def save_own_key_limits(visit: Here, key_id: FromPath[str]) -> Answer:
    """Save them, up to the tenant's own."""
    return await save_limits_of(visit, await _limits(visit, key_id))


async def _keys(visit: Visit) -> KeysOf:
    return KeysOf(
        tenant=await visit.parts.administration.get_tenant(visit.tenant_id),
        path="/console/own/keys",
        crumbs=(),
        may_write=visit.may(Permission.KEYS_WRITE),
        within_tenant=True,
    )


async def _key(visit: Visit, key_id: str) -> tuple[KeysOf, ApiKey]:
    """Raises NotFound in the words for whatever is not one's own, which repeat no name."""
    keys = await _keys(visit)
    try:
        return keys, await key_of(visit, keys, key_id)
    except NotFound:
        raise nothing_there() from None


async def _limits(visit: Visit, key_id: str) -> LimitsOf:
    return limits_of_key(*await _key(visit, key_id))


PAGES = (
    list_own_keys,
    show_new_own_key,
    create_own_key,
    show_own_key,
    rotate_own_key,
    revoke_own_key,
    show_own_key_limits,
    show_own_key_effect,
    save_own_key_limits,
)
