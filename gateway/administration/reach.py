"""What limits that are about to be stored can meet: the models that exist, and their prices."""

from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.price_book import PriceBook
from billing.postgres.price_tables import plan_member, price
from billing.postgres.prices import MEMBER_COLUMNS, PRICE_COLUMNS, member_from, price_from
from gateway.administration.fleet import known_models
from gateway.domain.limits_check import SELF, Reach
from gateway.domain.tenant import Tenant


async def reach_of(
    db: AsyncConnection,
    *,
    tenant_id: str,
    currency: str,
    now_ms: int,
    of_key: bool = False,
    allowed_models: Collection[str] | None = None,
) -> Reach:
    """The reach of a tenant that is billed in `currency`, or of its key for `allowed_models`."""
    members = await db.execute(select(*MEMBER_COLUMNS).where(plan_member.c.tenant_id == tenant_id))
    rows = await db.execute(
        select(*PRICE_COLUMNS).where(price.c.currency == currency, price.c.provider == SELF)
    )
    return Reach(
        known_models=await known_models(db),
        allowed_models=allowed_models,
        of_key=of_key,
        currency=currency,
        tenant_id=tenant_id,
        prices=PriceBook(map(price_from, rows), map(member_from, members)),
        now_ms=now_ms,
    )


async def reaches_of(
    db: AsyncConnection, tenants: Sequence[Tenant], *, now_ms: int
) -> dict[str, Reach]:
    """The reach of each of these tenants, by its id; the price book of a currency is read once."""
    models = await known_models(db)
    of_these = plan_member.c.tenant_id.in_([each.id for each in tenants])
    rows = await db.execute(select(*MEMBER_COLUMNS).where(of_these))
    members = list(map(member_from, rows))
    books: dict[str, PriceBook] = {}
    for currency in {each.currency for each in tenants}:
        prices = await db.execute(
            select(*PRICE_COLUMNS).where(price.c.currency == currency, price.c.provider == SELF)
        )
        books[currency] = PriceBook(map(price_from, prices), members)
    return {
        each.id: Reach(
            known_models=models,
            currency=each.currency,
            tenant_id=each.id,
            prices=books[each.currency],
            now_ms=now_ms,
        )
        for each in tenants
    }
