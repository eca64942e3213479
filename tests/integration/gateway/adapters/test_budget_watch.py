"""Alerts about budgets, on a real Postgres and over real HTTP."""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import openai
import pytest
from alert_receiver import alert_receiver
from invoice_world import MODEL, InvoiceWorld
from prometheus_client import REGISTRY

from billing.domain.budget_alert import BudgetAlert
from billing.postgres.budget_alerts import list_alerts, take_unsent
from gateway.adapters.alert_webhook import Webhook
from gateway.adapters.budget_watch import BudgetWatch
from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.tenant import Model, RequestClass

ME = "cli:test"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
SOON = timedelta(milliseconds=20)


class Budgets:
    """A tenant `acme` whose prompt tokens cost a millionth of a dollar, and its alerts."""

    def __init__(self, world: InvoiceWorld) -> None:
        self.world = world
        self.now = NOW
        self.administration = Administration(world.engine)
        self.watch = self.another()

    def another(self, webhook: Webhook | None = None) -> BudgetWatch:
        """Another gateway's."""
        return BudgetWatch(self.world.engine, webhook, now=lambda: self.now, first_wait=SOON)

    async def spend(self, dollars: str, *, at: datetime | None = None, **changes: Any) -> None:
        """One request that costs so much."""
        tokens = int(float(dollars) * 1_000_000)
        counts = {"prompt_tokens": tokens, "cached_prompt_tokens": 0, "output_tokens": 0}
        when = (at or self.now - timedelta(minutes=1)).isoformat()
        await self.world.use(when, **{"api_key_id": "key", **counts, **changes})

    async def limit(self, budget: str | None, **more: Any) -> None:
        """Set the tenant's budget."""
        limits = {"monthly_budget": budget, **more}
        await self.administration.change_tenant_limits(ME, "acme", limits)

    async def judged(self) -> list[BudgetAlert]:
        """All alerts once a gateway has looked, the first first."""
        await self.watch.judge()
        found: list[BudgetAlert] = await self.world.read(list_alerts, limit=100)
        return found[::-1]

    async def thresholds(self) -> list[tuple[int, int]]:
        """Of each alert, the percent and the limit in dollars."""
        return [(each.threshold_percent, each.limit_pico // 10**12) for each in await self.judged()]


@pytest.fixture
async def budgets(database_url: str) -> AsyncIterator[Budgets]:
    """With a budget of 10 dollars."""
    world = InvoiceWorld(async_engine(database_url))
    await world.open()
    made = Budgets(world)
    await made.administration.register_model(
        ME, Model(id=MODEL, context_tokens=2048, max_output_tokens=512)
    )
    await made.administration.create_tenant(ME, "acme", "Acme")
    await made.limit("10.00")
    yield made
    await world.engine.dispose()


def counted(threshold: int) -> float:
    """What the metric says."""
    labels = {"threshold": str(threshold)}
    return REGISTRY.get_sample_value("weir_budget_alerts_total", labels) or 0


async def test_each_threshold_is_told_once(
    budgets: Budgets, caplog: pytest.LogCaptureFixture
) -> None:
    """At 80 percent to the pico, at 100 when that comes; by however many gateways and however
    often they begin anew, from roll-ups or before there are any."""
    before = [counted(80), counted(100)]
    await budgets.spend("7.999999")
    assert await budgets.judged() == []
    await budgets.spend("0.000001", api_key_id="another")
    with caplog.at_level(logging.WARNING, logger="gateway.adapters.budget_watch"):
        await asyncio.gather(*(budgets.another().judge() for _ in range(5)))
    (alert,) = await budgets.judged()
    assert (alert.tenant_id, alert.api_key_id, alert.model) == ("acme", None, None)
    assert (alert.threshold_percent, alert.month, alert.currency) == (80, "2026-11", "USD")
    assert (alert.limit_pico, alert.spent_pico) == (10 * 10**12, 8 * 10**12)
    assert alert.period_start == datetime(2026, 11, 1, tzinfo=UTC)
    assert alert.period_end == datetime(2026, 12, 1, tzinfo=UTC)
    assert [record.getMessage() for record in caplog.records] == [
        f"budget alert {alert.id}: 80 % of the budget of 2026-11 for tenant acme is spent"
    ]
    await budgets.world.roll_up()
    await budgets.spend("5")
    await asyncio.gather(*(budgets.another().judge() for _ in range(5)))
    assert await budgets.thresholds() == [(80, 10), (100, 10)]
    assert [counted(80), counted(100)] == [before[0] + 1, before[1] + 1]


async def test_both_at_once_come_in_order(budgets: Budgets) -> None:
    """From nothing to 120 percent: 80, then 100, each with what was spent."""
    await budgets.spend("12")
    found = await budgets.judged()
    assert [(each.threshold_percent, each.spent_pico) for each in found] == [
        (80, 12 * 10**12), (100, 12 * 10**12),
    ]  # fmt: skip


async def test_a_limit_that_is_changed_is_another(budgets: Budgets) -> None:
    """Raised, and it has room again until that is spent; lowered, and what it is over is told at
    once; the first again, and it was told; taken away (B04), and there is nothing to tell."""
    await budgets.spend("9")
    assert await budgets.thresholds() == [(80, 10)]
    await budgets.limit("20.00")
    assert await budgets.thresholds() == [(80, 10)]
    await budgets.spend("8")
    assert await budgets.thresholds() == [(80, 10), (80, 20)]
    await budgets.limit("15.00")
    assert await budgets.thresholds() == [(80, 10), (80, 20), (80, 15), (100, 15)]
    await budgets.limit("20.00")
    await budgets.limit(None)
    await budgets.spend("100")
    assert len(await budgets.judged()) == 4
    await budgets.limit("10.00")
    assert (await budgets.thresholds())[4:] == [(100, 10)]


async def test_a_budget_of_0_is_no_alarm_by_itself(budgets: Budgets) -> None:
    """Only where something came through, or had before."""
    await budgets.limit("0.00")
    assert await budgets.judged() == []
    await budgets.spend("0.000001")
    assert await budgets.thresholds() == [(80, 0), (100, 0)]


async def test_a_budget_is_of_its_calendar_month(budgets: Budgets) -> None:
    """B02, B03: what other months cost counts for nothing; what this one cost before the budget was
    set does; the next month begins at 0 and is told for itself."""
    await budgets.limit(None)
    await budgets.spend("50", at=datetime(2026, 10, 31, 23, 59, tzinfo=UTC))
    await budgets.spend("8", at=datetime(2026, 11, 1, tzinfo=UTC))
    await budgets.limit("10.00")
    assert await budgets.thresholds() == [(80, 10)]
    budgets.now = datetime(2026, 12, 3, tzinfo=UTC)
    assert len(await budgets.judged()) == 1
    await budgets.spend("8.5")
    assert [each.month for each in await budgets.judged()] == ["2026-11", "2026-12"]


async def test_months_are_those_of_the_tenants_zone(budgets: Budgets) -> None:
    """And what ended one in its last minute is told in the first of the next, not weeks later."""
    await budgets.administration.update_tenant(ME, "acme", time_zone="Asia/Kathmandu")
    end = datetime(2026, 11, 30, 18, 15, tzinfo=UTC)
    await budgets.spend("9", at=end - timedelta(seconds=1))
    await budgets.spend("1", at=end)
    budgets.now = end + timedelta(minutes=6)
    assert await budgets.judged() == []
    budgets.now = end + timedelta(minutes=2)
    (alert,) = await budgets.judged()
    assert (alert.month, alert.period_end, alert.spent_pico) == ("2026-11", end, 9 * 10**12)


async def test_keys_and_models_have_budgets_of_their_own(budgets: Budgets) -> None:
    """Each is told with whose it is, and counts its own requests alone; revoked or not."""
    await budgets.limit(None, models={MODEL: {"monthly_budget": "3.00"}})
    created, _ = await budgets.administration.create_key(
        ME, "acme", "first", RequestClass.INTERACTIVE
    )
    key = created.id
    await budgets.administration.change_key_limits(ME, key, {"monthly_budget": "2.00"})
    await budgets.spend("1.5", api_key_id="another")
    await budgets.spend("1.7", api_key_id=key)
    await budgets.administration.revoke_key(ME, key)
    assert [
        (each.api_key_id, each.model, each.threshold_percent, each.spent_pico)
        for each in await budgets.judged()
    ] == [
        (None, MODEL, 80, 3_200_000_000_000),
        (None, MODEL, 100, 3_200_000_000_000),
        (key, None, 80, 1_700_000_000_000),
    ]


async def test_what_is_in_no_amount_is_said(budgets: Budgets) -> None:
    """Other currencies are other money; what has no price is counted beside the amount (B20), and
    never passes for 0."""
    await budgets.spend("100", currency="EUR")
    await budgets.spend("100", model="unpriced")
    await budgets.spend("100", model="unpriced", billable=False)
    assert await budgets.judged() == []
    await budgets.spend("8")
    (alert,) = await budgets.judged()
    assert (alert.spent_pico, alert.unpriced_requests) == (8 * 10**12, 1)


async def test_an_alert_is_sent_until_it_is_taken(
    budgets: Budgets, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the receiver does meanwhile: the same bytes under the same id, signed so that a
    library of receivers believes it; redirects are not followed. Then never again. Nothing logged
    says where or with what."""
    await budgets.spend("9")
    (alert,) = await budgets.judged()
    async with alert_receiver(500, 302, 0, 429) as receiver:
        webhook = Webhook(receiver.url, SECRET, now_s=lambda: int(datetime.now(UTC).timestamp()))
        watch = budgets.another(webhook)
        async with asyncio.timeout(20):
            while (await budgets.world.read(list_alerts, limit=1))[0].delivered_at is None:
                await watch.send()
                await asyncio.sleep(0.01)
        await budgets.world.sql("UPDATE budget_alert SET next_attempt_at = now()")
        await watch.send()
    assert len(receiver.taken) == 5
    (body,) = {body for _, body in receiver.taken}
    (message_id,) = {headers["webhook-id"] for headers, _ in receiver.taken}
    assert message_id == f"budget_alert_{alert.id}"
    webhooks = openai.OpenAI(api_key="unused", base_url="http://unused").webhooks
    for headers, _ in receiver.taken:
        webhooks.verify_signature(body, headers, secret=SECRET)
    with pytest.raises(openai.InvalidWebhookSignatureError):
        webhooks.verify_signature(body + b" ", headers, secret=SECRET)
    event = msgspec.json.decode(body)
    assert event["type"] == "budget.alert"
    assert event["data"]["tenant_id"] == "acme"
    assert (event["data"]["limit"], event["data"]["spent"]) == ("10.00", "9.00")
    assert "delivered_at" not in event["data"]
    assert len([record for record in caplog.records if "did not take" in record.message]) == 4
    for hidden in ("t0ken", SECRET, SECRET[6:], "127.0.0.1"):
        assert hidden not in caplog.text


async def test_gateways_send_each_alert_once_between_them(budgets: Budgets) -> None:
    """Where all is well. Who dies with one in hand leaves it to the next."""
    await budgets.spend("12")
    assert len(await budgets.judged()) == 2
    async with alert_receiver() as receiver:
        webhook = Webhook(receiver.url, "", now_s=lambda: 0)
        watches = [BudgetWatch(budgets.world.engine, webhook) for _ in range(4)]
        await asyncio.gather(*(watch.send() for watch in watches))
        assert sorted(headers["webhook-id"] for headers, _ in receiver.taken) == [
            f"budget_alert_{each.id}" for each in await budgets.judged()
        ]
        assert all("webhook-signature" not in headers for headers, _ in receiver.taken)
        await budgets.world.sql(
            "UPDATE budget_alert SET delivered_at = NULL, next_attempt_at = now()"
        )
        receiver.came.clear()
        dying = asyncio.create_task(watches[0].send())
        await receiver.came.wait()
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        await budgets.world.sql("UPDATE budget_alert SET next_attempt_at = now()")
        await watches[1].send()
    assert all(each.delivered_at for each in await budgets.judged())


async def test_what_one_has_in_hand_no_other_takes(budgets: Budgets) -> None:
    """Nor waits for it: while one takes an alert, another finds none."""
    await budgets.spend("9")
    await budgets.judged()
    engine = budgets.world.engine
    async with asyncio.timeout(10), engine.begin() as one, engine.begin() as another:
        assert await take_unsent(one, lease=SOON) is not None
        assert await take_unsent(another, lease=SOON) is None


async def test_a_slow_receiver_gets_each_alert_once(budgets: Budgets) -> None:
    """It answers one gateway after 9 of its 10 s: another sends meanwhile what the first does not
    have in hand, and neither sends what the other sent."""
    await budgets.limit("10.00", models={MODEL: {"monthly_budget": "5.00"}})
    await budgets.spend("12")
    assert len(await budgets.judged()) == 4
    async with alert_receiver() as receiver:
        receiver.hold = asyncio.Event()
        webhook = Webhook(receiver.url, "", now_s=lambda: 0)
        slow = asyncio.create_task(budgets.another(webhook).send())
        async with asyncio.timeout(20):
            await receiver.came.wait()
            first, receiver.hold = receiver.hold, None
            # As if 9 s went by: the receiver may take 10.
            await budgets.world.sql(
                "UPDATE budget_alert SET next_attempt_at = next_attempt_at - interval '9 seconds'"
            )
            await budgets.another(webhook).send()
            assert len(receiver.taken) == 4
            first.set()
            await slow
            await budgets.another(webhook).send()
    sent = [headers["webhook-id"] for headers, _ in receiver.taken]
    assert sorted(sent) == [f"budget_alert_{each.id}" for each in await budgets.judged()]


async def test_a_receiver_that_is_away_is_asked_less_and_less(budgets: Budgets) -> None:
    """After 10 s, 20 s, 40 s … an hour; after three days no more."""
    await budgets.spend("9")
    await budgets.judged()
    watch = BudgetWatch(budgets.world.engine, Webhook("http://127.0.0.1:1/", "", now_s=lambda: 0))
    waits = []
    for _ in range(12):
        await watch.send()
        ((wait,),) = await budgets.world.query(
            "SELECT round(extract(epoch FROM next_attempt_at - now())) FROM budget_alert"
        )
        waits.append(int(wait))
        await watch.send()
        await budgets.world.sql("UPDATE budget_alert SET next_attempt_at = now()")
    wanted = [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600]
    assert all(abs(wait - want) <= 2 for wait, want in zip(waits, wanted, strict=True)), waits
    await budgets.world.sql("UPDATE budget_alert SET noticed_at = now() - interval '73 hours'")
    await watch.send()
    assert await budgets.world.query("SELECT attempts FROM budget_alert") == [(12,)]
