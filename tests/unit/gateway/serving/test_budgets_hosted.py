"""Monthly budgets and hosted providers: the dearest is reserved, and nothing dearer is used."""

import pytest
from budget_gateway import ANSWER, CENT, HOSTED, PRICE, a_gateway, shown
from hosted_examples import a_provider
from hosted_gateway import REFUSED
from memory_gateway import error_of
from price_examples import a_price

from billing.domain.price_book import Price
from gateway.domain.hosted import HostedModel
from gateway.domain.tenant import DataPolicy, Limits

ALLOWED = Limits(monthly_budget="2.00", data_policy=DataPolicy.HOSTED_ALLOWED)


def hosted_price(**changes: object) -> Price:
    return a_price(**{"provider": HOSTED, "input_pico": CENT, "output_pico": 2 * CENT, **changes})


async def test_the_dearest_that_may_serve_is_reserved() -> None:
    """The provider's output costs twice as much: 5 + 2 x 50 cents. Only where the data policy
    lets the request go there, and what is spent is what it cost where it was served."""
    for policy, reserved in (
        (DataPolicy.HOSTED_ALLOWED, "1.05"),
        (DataPolicy.SELF_HOSTED_ONLY, "0.55"),
    ):
        limits = Limits(monthly_budget="0.01", data_policy=policy)
        gateway = a_gateway(tenant=limits, prices=[PRICE, hosted_price()])
        gateway.directory.all_providers = [a_provider()]
        assert f"may cost {reserved} USD" in error_of(await gateway.post())["message"]
    gateway = a_gateway(
        [REFUSED], ANSWER, tenant=ALLOWED, prices=[PRICE, hosted_price(cached_input_pico=None)]
    )
    gateway.directory.all_providers = [a_provider()]
    assert (await gateway.post()).status == 200
    assert gateway.record.provider == HOSTED
    assert (await shown(gateway))["spent_this_month"] == "0.35"


async def test_b25_a_provider_without_a_price_is_not_used_under_a_budget() -> None:
    """B25: the fleet is down; the fallback is refused, where without a budget it serves."""
    for limits, status in ((ALLOWED, 503), (Limits(data_policy=DataPolicy.HOSTED_ALLOWED), 200)):
        gateway = a_gateway([REFUSED], ANSWER, tenant=limits)
        gateway.directory.all_providers = [a_provider()]
        assert (await gateway.post()).status == status
        gateway = a_gateway(ANSWER, tenant=limits, workers=0)
        gateway.directory.all_providers = [a_provider()]
        assert (await gateway.post()).status == status


@pytest.mark.parametrize("dearer", [{"output_pico": 3 * CENT}, {"input_pico": 30 * CENT}])
async def test_b25_a_provider_dearer_than_the_reservation_is_not_used(
    dearer: dict[str, int],
) -> None:
    """B25: one that is registered while the request runs and is dearer than any that was there."""
    gateway = a_gateway(
        [REFUSED], tenant=ALLOWED,
        prices=[PRICE, hosted_price(), hosted_price(id=9, provider="hosted:new", **dearer)],
    )  # fmt: skip
    gateway.directory.all_providers = [a_provider(models={"n": HostedModel(name="n")})]
    gateway.journal.on_admitted = lambda: setattr(
        gateway.directory, "all_providers", [a_provider("new")]
    )
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "no_worker")
    assert len(gateway.engine.streams) == 1
