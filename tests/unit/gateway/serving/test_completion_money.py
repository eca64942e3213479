"""What a request costs its tenant is on its row: of the price that held when it arrived."""

from collections.abc import Sequence

import engine_events as events
import pytest
from hosted_gateway import a_gateway
from memory_gateway import MemoryGateway
from memory_ports import START_MS
from price_examples import a_price
from prometheus_client import REGISTRY
from scripted_engine import Step
from tenant_examples import a_tenant

from billing.domain.price_book import Price, PriceBook
from billing.domain.usage_record import Outcome, UsageRecord
from gateway.errors import WorkerFailed

GONE = WorkerFailed("gone")
HOSTED = "hosted:acme-ai"
LISTED = 100 * 1_000_000 + 900 * 100_000 + 50 * 4_000_000
"""Of 1,000 prompt tokens, 900 of them cached, and 50 of output."""


def an_answer() -> list[Step]:
    """An answer whose usage LISTED is the cost of."""
    return [*events.answer(["a", "b"])[:-1], events.usage(1_000, 50, cached=900)]


def a_priced_gateway(*prices: Price, script: Sequence[Step] | None = None) -> MemoryGateway:
    """A gateway with one worker that answers so, and these list prices."""
    gateway = MemoryGateway(an_answer() if script is None else script)
    gateway.directory.prices = PriceBook(prices)
    return gateway


def money(record: UsageRecord) -> tuple[int | None, int | None, int | None, str | None]:
    """The columns of money."""
    return record.price_id, record.cost_pico, record.list_cost_pico, record.currency


def unpriced(model: str = "m", provider: str = "self") -> float:
    """How many unpriced requests the metric counts."""
    labels = {"model": model, "provider": provider}
    return REGISTRY.get_sample_value("weir_unpriced_requests_total", labels) or 0


@pytest.mark.parametrize("stream", [True, False])
async def test_v37_a_row_has_its_cost_streamed_or_not(stream: bool) -> None:
    """B18, V37: cached tokens at their own price, in either form to the pico."""
    gateway = a_priced_gateway(a_price())
    await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert money(record) == (7, LISTED, LISTED, "USD")


async def test_v46_the_price_of_the_arrival_holds() -> None:
    """A price that is learned and begins while a request runs is the next request's."""

    def a_minute_passes() -> None:
        later = a_price(id=8, effective_from_ms=START_MS + 30_000)
        gateway.directory.prices = PriceBook([a_price(), later])
        gateway.clock.advance(60_000)

    script: list[Step] = [a_minute_passes, *an_answer()]
    gateway = a_priced_gateway(a_price(), script=script)
    await gateway.post()
    assert gateway.record.price_id == 7
    at_once = a_priced_gateway(a_price(), a_price(id=8, effective_from_ms=START_MS))
    await at_once.post()
    assert at_once.record.price_id == 8


@pytest.mark.parametrize(
    "prices",
    [
        [],
        [a_price(model="m-large")],
        [a_price(currency="EUR")],
        [a_price(provider=HOSTED)],
        [a_price(effective_from_ms=START_MS + 1)],
    ],
)
async def test_b20_without_a_price_the_row_is_unpriced(prices: list[Price]) -> None:
    """B20, B26, V47: served and counted, its cost NULL and never 0, and a metric says so."""
    gateway = a_priced_gateway(*prices)
    before = unpriced()
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert record.billable
    assert money(record) == (None, None, None, "USD")
    assert unpriced() == before + 1


async def test_a_tenant_is_rated_in_its_own_currency() -> None:
    gateway = a_priced_gateway(a_price(), a_price(id=9, currency="JPY", input_pico=150_000_000))
    gateway.directory.one_tenant = a_tenant(currency="JPY")
    await gateway.post()
    assert (gateway.record.price_id, gateway.record.currency) == (9, "JPY")
    assert gateway.journal.admissions[0].currency == "JPY"


async def test_what_the_tenant_does_not_pay_keeps_its_value() -> None:
    """A worker that dies midway: nothing is owed, what it would have cost is kept."""
    script: list[Step] = [events.content("a"), events.content("b"), GONE]
    gateway = a_priced_gateway(a_price(), script=script)
    await gateway.post(stream=True)
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    listed = record.prompt_tokens * 1_000_000 + record.output_tokens * 4_000_000
    assert listed > 0
    assert money(record) == (7, 0, listed, "USD")


async def test_what_is_neither_paid_nor_priced_is_not_counted_as_unpriced() -> None:
    before = unpriced()
    gateway = a_priced_gateway(script=[events.content("a"), GONE])
    await gateway.post(stream=True)
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert money(record) == (None, 0, None, "USD")
    assert unpriced() == before


@pytest.mark.parametrize("priced", [True, False])
async def test_the_provider_that_served_has_the_price(priced: bool) -> None:
    """Our own workers' price never stands in for a provider's."""
    gateway = a_gateway(an_answer())
    hosted = [a_price(id=8, provider=HOSTED, output_pico=8_000_000)] if priced else []
    gateway.directory.prices = PriceBook([a_price(), *hosted])
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    cost = LISTED + 50 * 4_000_000 if priced else None
    assert money(record) == (8 if priced else None, cost, cost, "USD")
    assert record.attempts[0].provider_cost_pico is not None


async def test_a_price_that_may_be_old_is_on_no_row() -> None:
    """Postgres was not seen for a while and a newer price may hold: without a budget it is served,
    and its row is unpriced rather than rated wrongly. What ran before is rated as ever."""
    gateway = a_priced_gateway(a_price(), script=an_answer())
    gateway.engine.scripts.append(an_answer())
    gateway.directory.prices_known_until_ms = START_MS
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert record.billable
    assert money(record) == (None, None, None, "USD")
    gateway.directory.prices_known_until_ms = START_MS + 1
    await gateway.post()
    assert money(gateway.journal.records[-1]) == (7, LISTED, LISTED, "USD")
