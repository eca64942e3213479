"""Hosted providers. Nothing here speaks to a provider, not even to see if it is there."""

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.directory_rows import HOSTED_COLUMNS, hosted_provider_from
from gateway.adapters.tables import hosted_provider as hosted_table
from gateway.administration.fleet import known_models
from gateway.administration.hosted_checks import check_provider, same_host
from gateway.administration.images import hosted_image, key_change
from gateway.administration.origins import check_no_worker_at
from gateway.administration.pages import LIMIT_DEFAULT, Page
from gateway.administration.store import Store, verb
from gateway.domain.hosted import HostedProvider
from gateway.errors import NotFound, Unprocessable


class HostedVerbs(Store):
    """The verbs on hosted providers. Registering what is registered so already does nothing."""

    @verb
    async def register_hosted_provider(
        self,
        actor: str,
        provider: HostedProvider,
        *,
        api_key: str | UnsetType | None = UNSET,
    ) -> HostedProvider:
        """Add a provider or replace it but for its key: UNSET keeps the one that is stored, None
        removes it. Kept it goes nowhere new: Unprocessable where the server is another one, and
        where a worker is at the server."""
        async with self._changing(actor) as change:
            before = await _found(change.db, provider.name)
            wanted = replace(provider, api_key=None if api_key is UNSET else api_key)
            wanted = check_provider(wanted, await known_models(change.db))
            await check_no_worker_at(change.db, wanted.url)
            if api_key is UNSET and before is not None and before.api_key is not None:
                if not same_host(before.url, wanted.url):
                    raise Unprocessable(
                        "api_key: the address is another server's: give its key, or null",
                        param="api_key",
                    )
                wanted = replace(wanted, api_key=before.api_key)
            if before == wanted:
                return wanted
            values = {**_values(wanted), "removed_at": None}
            statement = insert(hosted_table).values(name=wanted.name, **values)
            await change.db.execute(
                statement.on_conflict_do_update(index_elements=[hosted_table.c.name], set_=values)
            )
            await change.audit(
                "hosted.register",
                "hosted",
                wanted.name,
                before=None if before is None else hosted_image(before),
                after={**hosted_image(wanted), **key_change(before, wanted)},
            )
        return wanted

    @verb
    async def enable_hosted_provider(
        self, actor: str, name: str, enabled: bool = True
    ) -> HostedProvider:
        """Let requests go there again, or with False none any more; what runs there goes on. All
        else of it stays."""
        async with self._changing(actor) as change:
            before = await existing_hosted_provider(change.db, name)
            if before.enabled == enabled:
                return before
            row = await change.db.execute(
                update(hosted_table)
                .where(hosted_table.c.name == name)
                .values(enabled=enabled)
                .returning(*HOSTED_COLUMNS)
            )
            after = hosted_provider_from(row.one())
            await change.audit(
                "hosted.enable" if enabled else "hosted.disable",
                "hosted",
                name,
                before=hosted_image(before),
                after=hosted_image(after),
            )
        return after

    @verb
    async def remove_hosted_provider(self, actor: str, name: str) -> None:
        """Forget a provider and its key; gateways send it nothing from within a second on."""
        async with self._changing(actor) as change:
            before = await existing_hosted_provider(change.db, name)
            await change.db.execute(
                update(hosted_table)
                .where(hosted_table.c.name == name)
                .values(removed_at=func.now(), api_key=None)
            )
            await change.audit(
                "hosted.remove", "hosted", name, before=hosted_image(before), after=None
            )

    @verb
    async def get_hosted_provider(self, name: str) -> HostedProvider:
        """The provider, unless it was removed."""
        async with self._reading() as db:
            return await existing_hosted_provider(db, name)

    @verb
    async def list_hosted_providers(
        self, limit: int = LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[HostedProvider]:
        """Providers by name, without those that were removed."""
        query = select(*HOSTED_COLUMNS).where(hosted_table.c.removed_at.is_(None))
        by = hosted_table.c.name
        return await self._page(query, by, hosted_provider_from, limit, cursor)


async def existing_hosted_provider(db: AsyncConnection, name: str) -> HostedProvider:
    """The provider of that name. Raises NotFound."""
    found = await _found(db, name)
    if found is None:
        raise NotFound(f"there is no hosted provider {name}")
    return found


async def _found(db: AsyncConnection, name: str) -> HostedProvider | None:
    rows = await db.execute(
        select(*HOSTED_COLUMNS).where(
            hosted_table.c.name == name, hosted_table.c.removed_at.is_(None)
        )
    )
    row = rows.one_or_none()
    return None if row is None else hosted_provider_from(row)


def _values(provider: HostedProvider) -> dict[str, object]:
    values: dict[str, object] = msgspec.to_builtins(provider)
    del values["name"]
    return values
