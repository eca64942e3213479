"""The list prices of `weir dev`, so that a budget can be set out of the box. They are made up.

Where a model has a list price in that currency already, of whatever age, it is left alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from billing.domain.price_book import Price
from gateway.administration import Administration, NewPrice
from gateway.dev_hosted import SIMULATED
from gateway.dev_seed import ACTOR, all_of
from gateway.domain.hosted import PROVIDER_PREFIX
from gateway.domain.tenant import Model

CURRENCY = "USD"
"""What the seeded tenants are billed in."""


@dataclass(frozen=True)
class _Amounts:
    """In pico-USD per token."""

    input: int
    cached_input: int
    output: int


SELF_PRICE = _Amounts(input=200_000, cached_input=50_000, output=800_000)
SIMULATED_HOSTED_PRICE = _Amounts(input=600_000, cached_input=150_000, output=2_400_000)
"""More than the simulated provider says that it charges."""


async def seed_prices(
    administration: Administration,
    models: Sequence[Model],
    *,
    hosted: str,
    since_ms: int | None = None,
) -> None:
    """Give the models a list price each: at our own workers, and where `hosted` is the simulated
    provider, there too. What a provider at a URL is resold for is not ours to make up.

    With `since_ms` it holds from then on, until the first that there is; in Unix milliseconds."""
    ids = [model.id for model in models]
    await _seed(administration, ids, "self", SELF_PRICE, since_ms)
    if hosted == SIMULATED:
        provider = await administration.get_hosted_provider(SIMULATED)
        served = [each for each in ids if each in provider.models]
        provider_id = PROVIDER_PREFIX + SIMULATED
        await _seed(administration, served, provider_id, SIMULATED_HOSTED_PRICE, since_ms)


async def _seed(
    administration: Administration,
    models: Iterable[str],
    provider: str,
    amounts: _Amounts,
    since_ms: int | None,
) -> None:
    for model in models:
        prices = await all_of(partial(administration.list_prices, model=model))
        begin = [each.effective_from_ms for each in prices if _is_list_price(each, provider)]
        if begin and (since_ms is None or min(begin) <= since_ms):
            continue
        wanted = NewPrice(
            model=model,
            provider=provider,
            currency=CURRENCY,
            input_pico=amounts.input,
            cached_input_pico=amounts.cached_input,
            output_pico=amounts.output,
        )
        await administration.set_price(ACTOR, wanted, effective_from_ms=since_ms)


def _is_list_price(price: Price, provider: str) -> bool:
    """One of both classes, which everybody pays who has no other."""
    scope = (price.tenant_id, price.plan, price.request_class)
    return (price.provider, price.currency, *scope) == (provider, CURRENCY, None, None, None)
