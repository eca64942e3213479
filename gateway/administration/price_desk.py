"""Where prices are put: all that they must agree with, read once in a transaction, and the rules of
when one may begin. The requests of the past have been rated, so one that takes the place of another
begins no sooner than every gateway can know of it; where none held, also in the past.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.price_book import PRICE_PICO_MAX, REQUEST_PICO_MAX, Price
from billing.domain.price_past import is_of_line, replaced
from billing.postgres.price_tables import plan_member
from billing.postgres.price_tables import price as price_table
from billing.postgres.prices import PRICE_COLUMNS, price_from
from gateway.adapters.tables import hosted_provider, tenant
from gateway.administration.checks import EXPIRY_MAX_MS, check_currency, check_tenant_id
from gateway.administration.fleet import known_models
from gateway.administration.price_wishes import CLASSES, SELF, NewPrice
from gateway.domain.hosted import PROVIDER_PREFIX
from gateway.domain.instants import shown
from gateway.domain.price_news import LEAD_MS
from gateway.errors import Conflict, Unprocessable


@dataclass(frozen=True)
class Placed:
    """Where a price goes, and which of its own line it follows."""

    wanted: NewPrice
    begins_ms: int
    before: Price | None
    is_new: bool
    """False: `before` is this price already, and nothing is written. Its id is 0 where it was
    placed by this desk and is not written yet."""
    wrong_ms: int
    """From then on a gateway that has not read it rates wrongly."""


class PriceDesk:
    """The prices and names of one transaction, which holds the directory's lock."""

    def __init__(
        self,
        *,
        now_ms: int,
        prices: Iterable[Price],
        models: Collection[str],
        hosted: Mapping[str, Collection[str]],
        currencies: Mapping[str, str],
        plans: Iterable[tuple[str, str]],
    ) -> None:
        """`hosted` says which models each provider serves, `currencies` what each tenant is billed
        in, `plans` which tenant was ever on which."""
        self.now_ms = now_ms
        self._models = models
        self._hosted = hosted
        self._currencies = currencies
        self._plans: defaultdict[str | None, set[str]] = defaultdict(set)
        for tenant_id, plan in plans:
            self._plans[tenant_id].add(plan)
        self._prices: defaultdict[tuple[str, str, str], list[Price]] = defaultdict(list)
        for price in prices:
            self._prices[price.model, price.provider, price.currency].append(price)

    def check(self, wanted: NewPrice) -> None:
        """Raises Unprocessable naming what it cannot be for: a misspelt name would price nothing
        and leave what was meant unpriced."""
        check_currency(wanted.currency)
        for name in ("input_pico", "cached_input_pico", "output_pico", "reasoning_pico"):
            _check_range(wanted, name, PRICE_PICO_MAX)
        _check_range(wanted, "request_pico", REQUEST_PICO_MAX)
        if wanted.tenant_id is not None and wanted.plan is not None:
            raise _wrong("plan", "a price is of a tenant or of a plan, not of both")
        if wanted.request_class not in (None, *CLASSES):
            raise _wrong("class", f"must be one of {', '.join(CLASSES)}")
        if wanted.withdrawn and not any((wanted.tenant_id, wanted.plan, wanted.request_class)):
            raise _wrong(
                "withdrawn",
                "a list price of both classes cannot be withdrawn, since nothing is behind it; "
                "a price of '0' makes a model free",
            )
        if wanted.plan is not None:
            check_tenant_id(wanted.plan, field="plan")
        if wanted.tenant_id is not None:
            self._check_tenant(wanted.tenant_id, wanted.currency)
        self._check_served(wanted.model, wanted.provider)

    def place(self, wanted: NewPrice, effective_from_ms: int | None) -> Placed:
        """Where it goes, and from now on it is one of the desk's prices. Without an instant it
        begins at once where it takes the place of none, else LEAD_MS later. Raises Unprocessable,
        and Conflict where another price of its line begins at that instant."""
        self.check(wanted)
        line = (wanted.tenant_id, wanted.plan, wanted.request_class)
        among = self._prices[wanted.model, wanted.provider, wanted.currency]
        own = [price for price in among if is_of_line(price, *line)]

        def held(begins_ms: int, until_ms: int) -> Price | None:
            nexts = [each.effective_from_ms for each in own if each.effective_from_ms > begins_ms]
            return replaced(
                among,
                tenant_id=wanted.tenant_id,
                plan=wanted.plan,
                request_class=wanted.request_class,
                plans=self._plans[wanted.tenant_id],
                begins_ms=begins_ms,
                until_ms=min([until_ms, *nexts]),
            )

        soon_ms = self.now_ms + LEAD_MS
        begins_ms = effective_from_ms
        if begins_ms is None:
            begins_ms = self.now_ms if held(self.now_ms, soon_ms) is None else soon_ms
        before = max(
            (each for each in own if each.effective_from_ms <= begins_ms),
            key=lambda each: each.effective_from_ms,
            default=None,
        )
        is_there = before is not None and before.effective_from_ms == begins_ms
        if before is not None and wanted.is_as(before):
            if is_there or effective_from_ms is None:
                return Placed(wanted, before.effective_from_ms, before, False, begins_ms)
        elif is_there:
            raise Conflict(f"another price of {wanted.model} begins at {shown(begins_ms)} already")
        if wanted.withdrawn and (before is None or before.withdrawn):
            raise _wrong("withdrawn", f"there is no such price of {wanted.model} to end")
        if begins_ms < soon_ms and effective_from_ms is not None:
            self._check_gap(wanted, begins_ms, held(begins_ms, soon_ms))
        if not 0 <= begins_ms <= EXPIRY_MAX_MS:
            raise _wrong("effective_from", "must be within the years 1970 to 9999")
        is_first = held(begins_ms, begins_ms + LEAD_MS) is None
        among.append(_price(wanted, begins_ms))
        # Where there was none before it nobody rates wrongly, only not yet.
        wrong_ms = max(begins_ms, self.now_ms) + LEAD_MS if is_first else begins_ms
        return Placed(wanted, begins_ms, before, True, wrong_ms)

    def book(self) -> list[Price]:
        """Every price, with those that were placed."""
        return [price for some in self._prices.values() for price in some]

    def _check_gap(self, wanted: NewPrice, begins_ms: int, held: Price | None) -> None:
        earliest = f"must be {LEAD_MS // 1000} s from now or later"
        if held is not None:
            which = f"the price {held.id}" if held.id else "one of an earlier line"
            raise _wrong(
                "effective_from",
                f"{earliest}, so not before {shown(self.now_ms + LEAD_MS)}: {which} holds "
                "meanwhile, and what was rated at it stays",
            )
        if wanted.withdrawn:
            raise _wrong("effective_from", f"{earliest}: nothing is withdrawn for the past")

    def _check_tenant(self, tenant_id: str, currency: str) -> None:
        billed_in = self._currencies.get(tenant_id)
        if billed_in is None:
            raise _wrong("tenant_id", f"there is no tenant {tenant_id}")
        if billed_in != currency:
            raise _wrong("currency", f"the tenant {tenant_id} is billed in {billed_in}")

    def _check_served(self, model: str, provider: str) -> None:
        if model not in self._models:
            raise _wrong("model", f"there is no model {model}")
        if provider == SELF:
            return
        if not provider.startswith(PROVIDER_PREFIX):
            raise _wrong("provider", "must be self or hosted:<name>")
        name = provider.removeprefix(PROVIDER_PREFIX)
        if name not in self._hosted:
            raise _wrong("provider", f"there is no hosted provider {name}")
        if model not in self._hosted[name]:
            raise _wrong("provider", f"{provider} does not serve {model}")


async def open_desk(db: AsyncConnection, wishes: Iterable[NewPrice]) -> PriceDesk:
    """A desk for these wishes: the prices of their models. The caller holds the lock."""
    models = {wanted.model for wanted in wishes}
    prices = await db.execute(select(*PRICE_COLUMNS).where(price_table.c.model.in_(models)))
    tenants = await db.execute(select(tenant.c.id, tenant.c.currency))
    hosted = await db.execute(
        select(hosted_provider.c.name, hosted_provider.c.models).where(
            hosted_provider.c.removed_at.is_(None)
        )
    )
    members = await db.execute(
        select(plan_member.c.tenant_id, plan_member.c.plan).where(plan_member.c.plan.is_not(None))
    )
    return PriceDesk(
        now_ms=await now_ms_of(db),
        prices=[price_from(row) for row in prices],
        models=await known_models(db),
        hosted={name: frozenset(served) for name, served in hosted},
        currencies={row.id: row.currency for row in tenants},
        plans=[(tenant_id, plan) for tenant_id, plan in members],
    )


async def now_ms_of(db: AsyncConnection) -> int:
    """By the clock of Postgres, which every writer shares."""
    epoch = func.extract("epoch", func.clock_timestamp())
    now_ms = (await db.execute(select(func.floor(epoch * 1000)))).scalar_one()
    return int(now_ms)


def _price(wanted: NewPrice, begins_ms: int) -> Price:
    return Price(id=0, effective_from_ms=begins_ms, **vars(wanted))


def _check_range(wanted: NewPrice, name: str, most: int) -> None:
    pico = getattr(wanted, name)
    if pico is not None and not 0 <= pico <= most:
        raise _wrong(name.removesuffix("_pico"), "is out of range")


def _wrong(field: str, why: str) -> Unprocessable:
    return Unprocessable(f"{field}: {why}", param=field)
