"""Rating what had no price, once one is written for its time."""

from dataclasses import dataclass

from asyncpg import PostgresError
from sqlalchemy.exc import SQLAlchemyError

from billing.postgres.prices import unix_ms_of
from billing.postgres.rate_later import Unpriced, load_unpriced, rate_all
from gateway.administration.store import Store
from gateway.administration.store_errors import store_failure
from gateway.administration.views import View
from gateway.domain.instants import shown


@dataclass(frozen=True)
class Rated:
    """How many requests got their price, and which still have none."""

    rated: int
    unpriced: list[Unpriced]


def rated_view(rated: Rated) -> View:
    """As it is shown."""
    return {
        "rated": rated.rated,
        "unpriced": [
            {
                "tenant_id": each.tenant_id,
                "model": each.model,
                "provider": each.provider,
                "class": each.request_class,
                "currency": each.currency,
                "requests": each.requests,
                "first_at": shown(unix_ms_of(each.first_at)),
                "last_at": shown(unix_ms_of(each.last_at)),
            }
            for each in rated.unpriced
        ],
    }


class RatingVerbs(Store):
    """The verb on what is unpriced. It takes as long as it takes."""

    async def rate_unpriced(self, actor: str) -> Rated:
        """Rate every request that is unpriced and for whose time there is a price now, each once;
        what has a price stays as it is."""
        try:
            rated = await rate_all(self._engine)
            if rated:
                async with self._changing(actor) as change:
                    await change.audit(
                        "price.rate", "price", "unpriced", before=None, after={"requests": rated}
                    )
            async with self._reading() as db:
                return Rated(rated, await load_unpriced(db))
        except (OSError, TimeoutError, PostgresError, SQLAlchemyError) as error:
            raise store_failure(error, committing=False) from error
