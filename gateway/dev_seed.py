"""What `weir dev` writes through Administration: tenants, keys and users once, the fleet each time.

What exists is left as it is: an administrator may have suspended the tenant, revoked the key or
disabled the user since.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from backend.embedded.data_dir import write_private
from gateway.administration import Administration, Page
from gateway.administration.pages import LIMIT_MAX
from gateway.dev_secrets import TENANT_OF_USERS, TENANTS, DevSecrets
from gateway.domain.account import TENANT_ROLES
from gateway.domain.origin import origin_of
from gateway.domain.tenant import Model, Worker
from gateway.errors import Conflict, NotFound

ACTOR = "weir dev"
HINT_CHARACTERS = 4
Item = TypeVar("Item")


async def seed(administration: Administration, secrets: DevSecrets) -> None:
    """Create what is missing of the tenants without limits, their keys, and the users."""
    for tenant_id, keys in secrets.tenants.items():
        with suppress(Conflict):
            await administration.create_tenant(ACTOR, tenant_id, TENANTS.get(tenant_id, tenant_id))
        for request_class, secret in keys.items():
            with suppress(Conflict):  # in use or used once: revoked, it stays revoked
                await administration.create_key(
                    ACTOR, tenant_id, request_class, request_class, secret=secret
                )
    known = {user.email for user in (await administration.list_users()).items}
    for role, user in secrets.users.items():
        if user.email not in known:  # asked first: to hash a password takes its time
            with suppress(Conflict):
                await administration.create_user(
                    ACTOR,
                    user.email,
                    role,
                    user.password,
                    tenant_id=TENANT_OF_USERS if role in TENANT_ROLES else None,
                )
        # Another data directory may have given the same user of this database a token before.
        name = f"{ACTOR} {user.token[-HINT_CHARACTERS:]}"
        with suppress(Conflict):
            await administration.issue_token(ACTOR, user.email, name, secret=user.token)


async def register_fleet(
    administration: Administration,
    models: Sequence[Model],
    workers: Sequence[Worker],
    *,
    record: Path,
) -> None:
    """Register the models that are missing, and the workers; remove those of an earlier start.

    `record` keeps the ids of the workers registered here: others are an administrator's own.
    """
    known = {model.id: model for model in await all_of(administration.list_models)}
    for model in models:
        if model.id not in known or known[model.id].context_tokens != model.context_tokens:
            await administration.register_model(ACTOR, model)
    ids = [worker.id for worker in workers]
    before = recorded(record)
    # Written first with both: a start that is cut short leaves none behind unrecorded.
    write_private(record, msgspec.json.encode(sorted({*before, *ids})))
    for worker in workers:
        await administration.register_worker(ACTOR, worker)
    for worker_id in before - set(ids):
        with suppress(NotFound):
            await administration.remove_worker(ACTOR, worker_id)
    write_private(record, msgspec.json.encode(ids))


async def registered_ports(administration: Administration) -> frozenset[int]:
    """Where workers and hosted providers are registered, on whatever machine: what starts here
    starts at none of them, since a server is a worker's or a provider's."""
    urls = [each.url for each in await all_of(administration.list_workers)]
    urls += [each.url for each in await all_of(administration.list_hosted_providers)]
    origins = [origin_of(url) for url in urls]
    return frozenset(origin[1] for origin in origins if origin is not None)


async def all_of(list_page: Callable[[int, str | None], Awaitable[Page[Item]]]) -> list[Item]:
    """Every item of a list that comes in pages."""
    page = await list_page(LIMIT_MAX, None)
    items = list(page.items)
    while page.next_cursor is not None:
        page = await list_page(LIMIT_MAX, page.next_cursor)
        items.extend(page.items)
    return items


def recorded(record: Path) -> set[str]:
    """The names that an earlier start wrote there; none where there was none."""
    try:
        return set(msgspec.json.decode(record.read_bytes(), type=list[str]))
    except (FileNotFoundError, msgspec.DecodeError):
        return set()
