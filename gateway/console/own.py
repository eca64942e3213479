"""The first page of a tenant's own people: their limits and what is used of them now, how long a
request would wait, how to connect, and their latest requests."""

from typing import Any

from litestar import get

from billing.postgres.request_list import RequestFilter
from gateway.console.access import own_page
from gateway.console.key_pages import key_state
from gateway.console.request_words import outcome_kind, outcome_text
from gateway.console.visit import Answer, Here, Visit, known
from gateway.domain.permissions import Permission
from gateway.domain.tenant import ApiKey, Tenant
from gateway.http.request_views import Sight, page_of_requests
from gateway.serving.own_now import own_now

LATEST = 8
KEYS_LOOKED_AT = 100
MODELS_SHOWN_MAX = 50
_READ = own_page(Permission.TENANTS_READ)


@get("/own", opt=_READ)
async def show_overview(visit: Here) -> Answer:
    """How the tenant stands now."""
    tenant = await _tenant(visit)
    keys = await _keys(visit, tenant)
    return visit.show(
        "own/overview.html",
        **await _now(visit, tenant, keys),
        **await _latest(visit, tenant, keys),
        connect=connect_text(_base_url(visit), [model.id for model in _models(visit)]),
        base_url=_base_url(visit),
    )


@get("/own/now", opt=_READ)
async def show_overview_now(visit: Here) -> Answer:
    """The part of it that reads itself anew."""
    tenant = await _tenant(visit)
    return visit.fragment("own/_now.html", **await _now(visit, tenant, await _keys(visit, tenant)))


@get("/own/latest", opt=own_page(Permission.USAGE_READ))
async def show_latest_now(visit: Here) -> Answer:
    """Its latest requests."""
    tenant = await _tenant(visit)
    keys = await _keys(visit, tenant)
    return visit.fragment("own/_latest.html", **await _latest(visit, tenant, keys))


def connect_text(base_url: str, models: list[str]) -> dict[str, str]:
    """How one calls the API, in Python and on the command line; of the first model."""
    model = models[0] if models else "the-model"
    return {
        "python": f"""from openai import OpenAI

client = OpenAI(
    base_url="{base_url}",
    api_key="sk-weir-…",
)
answer = client.chat.completions.create(
    model="{model}",
    messages=[{{"role": "user", "content": "Hello"}}],
)
print(answer.choices[0].message.content)""",
        "curl": f"""curl {base_url}/chat/completions \\
  -H "Authorization: Bearer $WEIR_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{{"model": "{model}",
       "messages": [{{"role": "user", "content": "Hello"}}]}}'""",
    }


async def _tenant(visit: Visit) -> Tenant:
    """As this gateway goes by it, which needs no store; one that it has not yet is asked for."""
    tenant = visit.parts.directory.tenant(visit.tenant_id)
    if tenant is None:
        tenant = await visit.parts.administration.get_tenant(visit.tenant_id)
    return tenant


async def _keys(visit: Visit, tenant: Tenant) -> list[ApiKey] | None:
    """Some keys, of which those that are narrowed are shown; None while Postgres is away."""
    found = await known(visit.parts.administration.list_keys(tenant.id, KEYS_LOOKED_AT))
    return None if found is None else list(found.items)


def _models(visit: Visit) -> list[Any]:
    return sorted(visit.parts.directory.models(), key=lambda model: model.id)[:MODELS_SHOWN_MAX]


async def _now(visit: Visit, tenant: Tenant, keys: list[ApiKey] | None) -> dict[str, Any]:
    now_ms = visit.now_ms
    working = [key for key in keys or () if key_state(key, now_ms).works]
    now = await own_now(tenant, working, visit.parts.live, visit.parts.months)
    return {
        "tenant": tenant,
        "now": now,
        "models": _models(visit),
        "narrowed": now["narrowed"],
        "has_keys": keys is None or bool(working),
        "money": visit.may(Permission.INVOICES_READ),
    }


async def _latest(visit: Visit, tenant: Tenant, keys: list[ApiKey] | None) -> dict[str, Any]:
    chosen = RequestFilter(tenant_id=tenant.id)
    page = await known(visit.parts.stories.page(chosen, limit=LATEST))
    sight = Sight(money=visit.may(Permission.INVOICES_READ), operation=False)
    return {
        "latest": None if page is None else page_of_requests(page, sight)["items"],
        "key_names": {key.id: key.name for key in keys or ()},
        "outcome_text": outcome_text,
        "outcome_kind": outcome_kind,
    }


def _base_url(visit: Visit) -> str:
    """Where the API is, by the address that the browser came to."""
    return f"{'https' if visit.secure else 'http'}://{visit.request.url.netloc}/v1"


PAGES = (show_overview, show_overview_now, show_latest_now)
