"""What one request may cost at most, and which providers may serve it for that."""

from collections.abc import Iterable
from dataclasses import dataclass

from billing.domain.price_book import Price, PriceBook
from billing.domain.rating import dearest_of, most_pico
from gateway.domain.billing_month import month_key
from gateway.domain.limits_check import SELF
from gateway.domain.scopes import scopes_of
from gateway.domain.tenant import RequestClass
from gateway.errors import Overloaded, QuotaExceeded, Unpriced
from gateway.serving.authenticate import Caller
from gateway.serving.estimate import Estimate
from gateway.serving.ports import Directory


@dataclass(frozen=True)
class Rates:
    """The dearest that a token and a request can cost: at whichever provider its choice is served.
    Pico-units."""

    input_pico: int
    output_pico: int
    request_pico: int = 0

    def most_pico(self, prompt_tokens: int, output_tokens: int) -> int:
        """What a request of so many tokens costs at most."""
        return (
            prompt_tokens * self.input_pico + output_tokens * self.output_pico + self.request_pico
        )


@dataclass
class Spending:
    """The money of one request: the prices of its model when it arrived, the month that it counts
    in, and from its admission on what is reserved.

    With a budget in any scope it is served by nobody whose price is not known, or could come to
    more than the reservation (B25).
    """

    book: PriceBook
    model: str
    currency: str
    at_ms: int
    month: str
    has_budget: bool
    tenant_id: str
    request_class: str
    is_priced: bool = True
    """Whether the book has every price that holds at its arrival."""
    needs: Estimate | None = None
    rates: Rates = Rates(0, 0)

    @property
    def cost_pico(self) -> int:
        """What is reserved: the most that it may cost."""
        if self.needs is None:
            return 0
        return self.rates.most_pico(self.needs.prompt_tokens_max, self.needs.output_tokens_max)

    def price(self, provider: str) -> Price | None:
        """A provider's price of the model for this tenant and class at the request's arrival."""
        return self.book.price_at(
            self.model,
            provider,
            self.currency,
            self.at_ms,
            tenant_id=self.tenant_id,
            request_class=self.request_class,
        )

    def allows(self, provider: str) -> bool:
        """Whether the provider may serve it, as far as money goes."""
        if not self.has_budget:
            return True
        price = self.price(provider)
        if price is None:
            return False
        needs = self.needs
        return needs is None or self.cost_pico >= most_pico(
            price, prompt_tokens=needs.prompt_tokens_max, output_tokens=needs.output_tokens_max
        )

    def reserve(self, needs: Estimate, hosted: Iterable[str]) -> None:
        """Fix what it may cost: at the dearest of the fleet and the `hosted` providers that it may
        reach, those without a price left out."""
        prices = [p for p in map(self.price, (SELF, *hosted)) if p is not None]
        self.needs = needs
        dearest = [dearest_of(price) for price in prices]
        self.rates = Rates(
            input_pico=max((each.input_pico for each in dearest), default=0),
            output_pico=max((each.output_pico for each in dearest), default=0),
            request_pico=max((price.request_pico for price in prices), default=0),
        )

    def require_price(self) -> None:
        """Raises Unpriced where a budget is in force and the fleet has no price for the model,
        Overloaded(admission_unavailable) where a newer price may hold than this gateway has read.

        Either is a 503, since it is the operator's to mend: a 429 would send the tenant to raise
        a budget that has nothing to do with it, and served it would run unbounded.
        """
        if self.has_budget and not self.is_priced:
            raise Overloaded(
                "prices are being read: what this request may cost is not known yet",
                code="admission_unavailable",
            )
        if self.has_budget and self.price(SELF) is None:
            raise Unpriced(
                f"the model {self.model} has no price in {self.currency}, so what this request "
                "costs cannot be held within the monthly budget; whoever runs this service can "
                "set one"
            )

    def say_what_fits(self, refused: QuotaExceeded) -> None:
        """Add to a refusal what maximum might fit what the budget still has."""
        needs = self.needs
        each_pico = 0 if needs is None else self.rates.output_pico * needs.sequences
        if needs is None or each_pico == 0:
            return
        left_pico = refused.remaining_pico - self.rates.most_pico(needs.prompt_tokens_max, 0)
        fitting = min(left_pico // each_pico, needs.max_tokens - 1)
        if fitting >= 1:
            refused.message += f"; with max_tokens of at most {fitting} it may fit"


def spending_of(
    caller: Caller, model: str, directory: Directory, *, at_ms: int, request_class: RequestClass
) -> Spending:
    """The money of a request that arrived at `at_ms` (Unix ms). Raises as `require_price`."""
    tenant = caller.tenant
    scopes = scopes_of(tenant, caller.key, model)
    spending = Spending(
        book=directory.price_book(),
        model=model,
        currency=tenant.currency,
        at_ms=at_ms,
        month=month_key(at_ms, tenant.time_zone, tenant.currency),
        has_budget=any(scope.budget_pico is not None for scope in scopes),
        tenant_id=tenant.id,
        request_class=request_class.value,
        is_priced=directory.knows_prices_at(at_ms),
    )
    spending.require_price()
    return spending
