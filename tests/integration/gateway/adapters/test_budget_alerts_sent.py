"""Alerts about budgets are sent, over real HTTP."""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec
import openai
import pytest
from alert_receiver import alert_receiver
from budget_world import SOON, Budgets, budget_world
from invoice_world import MODEL

from billing.postgres.budget_alerts import list_alerts, take_unsent
from gateway.adapters.alert_webhook import Webhook
from gateway.adapters.budget_watch import BudgetWatch

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


@pytest.fixture
async def budgets(database_url: str) -> AsyncIterator[Budgets]:
    """With a budget of 10 dollars."""
    async with budget_world(database_url) as made:
        yield made


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
