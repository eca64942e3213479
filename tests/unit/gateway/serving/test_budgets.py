"""Monthly budgets on the straight line: what is reserved, refused, spent and shown."""

import asyncio
from datetime import UTC, datetime

import engine_events as events
import pytest
from budget_gateway import ANSWER, MONTH, USD, a_gateway, left, set_limits, shown
from memory_gateway import error_of, until
from memory_ports import START_MS
from price_examples import a_price
from scripted_engine import HANG, Step
from tenant_examples import a_tenant

from billing.domain.price_book import Price
from billing.domain.usage_record import Outcome
from gateway.domain.admission import Settled
from gateway.domain.scopes import scopes_of
from gateway.domain.tenant import Limits, ModelLimits


async def test_b01_without_a_budget_nothing_is_ever_over_it() -> None:
    """B01: whatever the month has cost, and however dear the request."""
    gateway = a_gateway(ANSWER, prices=[a_price(input_pico=USD, output_pico=USD)])
    gateway.months.spent[MONTH] = {"tenant": 10**9 * USD}
    assert (await gateway.post()).status == 200
    assert gateway.months.asked == []
    assert (await shown(gateway))["remaining_this_month"] is None


async def test_b02_a_budget_that_is_set_counts_its_own_month() -> None:
    """B02: 50 spent in other months, and 10 set now: nothing of it is spent. What this month has
    cost already counts."""
    gateway = a_gateway(ANSWER, tenant=Limits(monthly_budget="10.00"))
    gateway.months.spent["2026-12"] = {"tenant": 50 * USD}
    assert left(await gateway.post()) == "9.45"
    used = a_gateway(tenant=Limits(monthly_budget="10.00"))
    used.months.spent[MONTH] = {"tenant": 50 * USD}
    assert (await used.post()).status == 429


async def test_b03_a_new_month_begins_with_nothing_spent() -> None:
    """B03: where the tenant is billed, at the first instant; the next reset moves with it."""
    limits = Limits(monthly_budget="0.60")
    gateway = a_gateway(ANSWER, tenant=limits, time_zone="Asia/Tokyo")
    assert (await gateway.post()).status == 200
    assert (await gateway.post()).status == 429
    before = await shown(gateway)
    assert before["month_resets_at"] == "2027-01-31T15:00:00.000Z"
    last_ms = int(datetime(2027, 1, 31, 15, tzinfo=UTC).timestamp() * 1000) - 1
    gateway.clock.advance(last_ms - START_MS)
    assert (await gateway.post()).status == 429
    gateway.clock.advance(1)
    gateway.engine.scripts += [ANSWER]
    assert (await gateway.post()).status == 200
    after = await shown(gateway)
    assert (after["spent_this_month"], after["month_resets_at"]) == (
        "0.20",
        "2027-02-28T15:00:00.000Z",
    )


async def test_b04_a_budget_that_is_taken_away_is_gone() -> None:
    """B04: at the next request."""
    gateway = a_gateway(*[ANSWER] * 2, tenant=Limits(monthly_budget="0.60"))
    assert (await gateway.post()).status == 200
    assert (await gateway.post()).status == 429
    set_limits(gateway, Limits(monthly_budget=None), 2)
    assert (await gateway.post()).status == 200


async def test_b06_what_a_request_cost_is_seen_once_it_is_settled() -> None:
    """B06, R18: while it runs it is reserved, at the next look it is spent; in the headers of the
    next answer and in `GET /v1/limits`, on any gateway, since the store tells both."""
    go_on = asyncio.Event()
    running: list[Step] = [go_on, *ANSWER]
    gateway = a_gateway(running, ANSWER, tenant=Limits(monthly_budget="5.00"))
    first = gateway.a_client()
    task = asyncio.create_task(gateway.serve(first))
    await until(lambda: gateway.engine.streams)
    view = await shown(gateway)
    assert (view["spent_this_month"], view["reserved_this_month"]) == ("0.00", "0.55")
    assert view["remaining_this_month"] == "4.45"
    go_on.set()
    await task
    assert left(first) == "4.45"
    view = await shown(gateway)
    assert (view["monthly_budget"], view["currency"]) == ("5.00", "USD")
    assert (view["spent_this_month"], view["reserved_this_month"]) == ("0.20", "0.00")
    assert view["remaining_this_month"] == "4.80"
    assert left(await gateway.post()) == "4.25"


async def test_a_look_brings_the_months_spend_back() -> None:
    """It is known before the first request; and null while it is not, never zero."""
    gateway = a_gateway(tenant=Limits(monthly_budget="5.00"))
    gateway.months.spent[MONTH] = {"tenant": 2 * USD}
    gateway.months.knows = False
    view = await shown(gateway)
    assert (view["spent_this_month"], view["remaining_this_month"]) == (None, None)
    gateway.months.knows = True
    assert (await shown(gateway))["spent_this_month"] == "2.00"


async def test_an_unknown_spend_is_a_503() -> None:
    """Never unlimited, and no 429 that rests on nothing."""
    gateway = a_gateway(tenant=Limits(monthly_budget="5.00"))
    gateway.months.knows = False
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "admission_unavailable")
    gateway.assert_nothing_admitted()


SCOPES = [
    ("tenant", Limits(monthly_budget="0.54"), None),
    ("key key-1", None, Limits(monthly_budget="0.54")),
    ("model m", Limits(models={"m": ModelLimits(monthly_budget="0.54")}), None),
    ("key key-1 and model m", None, Limits(models={"m": ModelLimits(monthly_budget="0.54")})),
]


@pytest.mark.parametrize(("scope", "tenant", "key"), SCOPES)
async def test_r27_what_could_pass_a_budget_is_refused(
    scope: str, tenant: Limits | None, key: Limits | None
) -> None:
    """R27, S19: before it runs, in any scope; 429 that no SDK repeats, with what the budget is,
    what is used of it, what this may cost, and what maximum would fit."""
    gateway = a_gateway(tenant=tenant, key=key)
    client = await gateway.post()
    error = error_of(client)
    assert client.status == 429
    assert (error["type"], error["code"]) == ("insufficient_quota", "insufficient_quota")
    assert error["message"] == (
        f"the monthly budget of the {scope} is 0.54 USD: 0.00 USD spent or reserved, this request "
        "may cost 0.55 USD; with max_tokens of at most 49 it may fit"
    )
    assert client.headers[b"x-should-retry"] == b"false"
    assert 1 <= int(client.headers[b"retry-after"]) <= 60
    assert client.headers[b"x-ratelimit-limit-budget"] == b"0.54"
    gateway.assert_nothing_admitted()


async def test_what_the_message_says_would_fit_fits() -> None:
    """And where nothing fits it says nothing of the kind."""
    gateway = a_gateway(ANSWER, tenant=Limits(monthly_budget="0.54"))
    assert (await gateway.post(max_tokens=49)).status == 200
    poor = a_gateway(tenant=Limits(monthly_budget="0.05"))
    assert "max_tokens" not in error_of(await poor.post())["message"]
    none = a_gateway(tenant=Limits(monthly_budget="0"))
    assert (await none.post(max_tokens=1)).status == 429


async def test_r26_together_they_do_not_pass_it() -> None:
    """R26: 20 at once worth up to 0.20 each, and 1.00: five are admitted."""
    go_on = asyncio.Event()
    script: list[Step] = [go_on, *ANSWER]
    gateway = a_gateway(*[script] * 5, tenant=Limits(monthly_budget="1.00"))
    clients = [gateway.a_client(max_tokens=15) for _ in range(20)]
    tasks = [asyncio.create_task(gateway.serve(client)) for client in clients]
    await until(lambda: sum(client.status == 429 for client in clients) == 15)
    go_on.set()
    await asyncio.gather(*tasks)
    assert sum(client.status == 200 for client in clients) == 5
    assert (await shown(gateway))["remaining_this_month"] == "0.00"


async def test_all_choices_and_the_models_cap_are_reserved() -> None:
    """Without a maximum the engine may generate 100 each: 5 + 3 x 100 tokens."""
    go_on = asyncio.Event()
    script: list[Step] = [go_on, *ANSWER]
    gateway = a_gateway(*[script] * 3, tenant=Limits(monthly_budget="5.00"))
    client = gateway.a_client(max_tokens=None, n=3)
    task = asyncio.create_task(gateway.serve(client))
    await until(lambda: len(gateway.engine.streams) == 3)
    assert (await shown(gateway))["reserved_this_month"] == "3.05"
    go_on.set()
    await task
    assert (await shown(gateway))["spent_this_month"] == "0.50"


async def test_a_request_that_did_not_run_costs_nothing() -> None:
    """Refused by the engine, and journaled without a worker: all of it is free again."""
    gateway = a_gateway([events.error(400, "no")], tenant=Limits(monthly_budget="0.60"))
    await gateway.post()
    assert gateway.record.outcome is Outcome.REFUSED
    view = await shown(gateway)
    assert (view["spent_this_month"], view["reserved_this_month"]) == ("0.00", "0.00")


async def test_an_image_is_reserved_as_the_whole_context() -> None:
    """Nobody counts it beforehand, and money is no debt: 1,000 tokens of prompt and 50."""
    gateway = a_gateway(tenant=Limits(monthly_budget="10.49"))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    client = await gateway.post(messages=[{"role": "user", "content": [image]}])
    assert "may cost 10.50 USD" in error_of(client)["message"]


@pytest.mark.parametrize(
    ("tenant", "key"),
    [
        (Limits(monthly_budget="5.00"), None),
        (None, Limits(models={"m": ModelLimits(monthly_budget="5.00")})),
    ],
)
@pytest.mark.parametrize("prices", [[], [a_price(currency="EUR")], [a_price(model="n")]])
async def test_an_unpriced_model_is_not_served_under_a_budget(
    tenant: Limits | None, key: Limits | None, prices: list[Price]
) -> None:
    """A 503, ours to mend, that says so; nothing is counted, held or sent."""
    gateway = a_gateway(tenant=tenant, key=key, prices=prices)
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "admission_unavailable")
    assert "no price in USD" in error_of(client)["message"]
    assert client.headers[b"x-should-retry"] == b"false"
    assert gateway.engine.streams == []
    assert gateway.journal.admissions == []


async def test_a_budget_that_only_the_store_knows_holds_too() -> None:
    """Set a moment ago: an unpriced request that was granted because it costs nothing known is
    taken back."""
    gateway = a_gateway(prices=[])
    newer = a_tenant(Limits(monthly_budget="5.00"), limits_version=2)
    (key,) = gateway.directory.keys
    await gateway.ledger.observe("acme", scopes_of(newer, key, "m"))
    client = await gateway.post()
    assert (client.status, error_of(client)["code"]) == (503, "admission_unavailable")
    gateway.assert_nothing_admitted()


async def test_what_an_aborted_stream_cost_is_spent() -> None:
    """The client leaves: what was generated until then."""
    gateway = a_gateway(
        [events.content("a"), events.content("b"), HANG], tenant=Limits(monthly_budget="5.00")
    )
    client = gateway.a_client(stream=True)
    task = asyncio.create_task(gateway.serve(client))
    await until(lambda: client.sent)
    client.leave()
    await task
    assert gateway.record.outcome is Outcome.CLIENT_CANCELLED
    cost = gateway.record.cost_pico
    assert gateway.ledger.costs == [(gateway.record.request_id.hex, cost)]
    assert gateway.ledger.settlements[0][3] is Settled.LIVE
    assert (await shown(gateway))["reserved_this_month"] == "0.00"
