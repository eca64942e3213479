"""Which gateways go by a change already: asked after it was made, and never part of it."""

from functools import cached_property

from sqlalchemy import Table, select

from gateway.adapters.births import Births, history_in
from gateway.adapters.confirmations import Confirmations
from gateway.adapters.presence import Gateways
from gateway.adapters.tables import api_key, tenant
from gateway.administration.store import Store, verb
from gateway.domain.confirmation import Confirmation, Unknown, not_known
from gateway.errors import NotFound, StoreUnavailable


class ConfirmVerbs(Store):
    """Wait for gateways. Neither verb raises: what was changed is changed, and where nobody can be
    asked the answer says so. Each takes at most 1.2 s, beside a look at Postgres."""

    async def confirm_key(self, key_id: str) -> Confirmation:
        """Who goes by the last change of a key."""
        return await self._confirm(api_key, key_id)

    async def confirm_tenant(self, tenant_id: str) -> Confirmation:
        """Who goes by the last change of a tenant."""
        return await self._confirm(tenant, tenant_id)

    async def _confirm(self, table: Table, subject_id: str) -> Confirmation:
        confirmations = self._confirmations
        if confirmations is None:
            return not_known(Unknown.NO_STORE)
        try:
            changed = await self._changed(table, subject_id)
        except (StoreUnavailable, NotFound):
            return not_known(Unknown.CHANGE_UNREAD)
        return await confirmations.wait(changed)

    @verb
    async def _changed(self, table: Table, subject_id: str) -> int:
        async with self._reading() as db:
            found = await db.scalar(select(table.c.changed).where(table.c.id == subject_id))
        if found is None:
            raise NotFound(f"there is no {subject_id}")
        return int(found)

    @cached_property
    def _confirmations(self) -> Confirmations | None:
        if self._redis is None:
            return None
        births = Births(self._redis, history_in(self._engine))
        return Confirmations(self._redis, Gateways(self._redis, births))
