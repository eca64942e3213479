"""A straight line in memory whose tenants have budgets, and what is shown of them."""

from collections.abc import Sequence
from typing import Any

import engine_events as events
from memory_gateway import MemoryGateway
from price_examples import a_price
from scripted_engine import RecordingConnection, Step
from tenant_examples import a_key, a_tenant

from billing.domain.price_book import Price, PriceBook
from gateway.domain.tenant import Limits
from gateway.serving.authenticate import Caller
from gateway.serving.limits_view import limits_view

CENT = 10**10
USD = 10**12
MONTH = "2027-01"
HOSTED = "hosted:acme-ai"
PRICE = a_price(input_pico=CENT, cached_input_pico=None, output_pico=CENT)
"""A cent a token, so that CHAT, 5 tokens of prompt and up to 50 of output, may cost 0.55."""
ANSWER = events.answer(["a"] * 15)
"""15 tokens: with the prompt 0.20."""


def a_gateway(
    *scripts: Sequence[Step],
    tenant: Limits | None = None,
    key: Limits | None = None,
    prices: list[Price] | None = None,
    workers: int = 1,
    **changes: object,
) -> MemoryGateway:
    """A gateway whose tenant and key have these limits."""
    gateway = MemoryGateway(*scripts, workers=workers)
    gateway.directory.prices = PriceBook([PRICE] if prices is None else prices)
    gateway.directory.one_tenant = a_tenant(tenant, **changes)
    gateway.directory.keys = [a_key(key)]
    return gateway


def set_limits(gateway: MemoryGateway, limits: Limits, version: int) -> None:
    """The tenant's limits are changed."""
    gateway.directory.one_tenant = a_tenant(limits, limits_version=version)


async def shown(gateway: MemoryGateway) -> dict[str, Any]:
    """What `GET /v1/limits` says of the tenant."""
    tenant, (key,) = gateway.directory.one_tenant, gateway.directory.keys
    assert tenant is not None
    view: Any = await limits_view(
        Caller(tenant, key),
        gateway.ledger,
        now_ms=gateway.clock.now_ms(),
        uses={},
        months=gateway.months,
    )
    return dict(view["tenant"])


def left(client: RecordingConnection) -> str:
    """What the headers of an answer say of the budget."""
    return client.headers[b"x-ratelimit-remaining-budget"].decode()
