"""Unit cost and reconciliation: asked in a form, answered as the APIs and commands answer."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from console_visitor import Visitor
from unit_cost_rows import SINCE, add_samples, add_workers, rows, store

from billing.domain.reconciliation.findings import Check, Finding, Verdict, terms
from billing.postgres.reconcile_runs import Kind, keep_run
from gateway.app import Gateway
from gateway.domain.account import Role
from gateway.errors import StoreUnavailable

COST = "/console/money/unit-cost"
RECONCILED = "/console/money/reconciliation"
ASKED = "since=2026-11-28T00:00&until=2026-11-30T00:00&price_per_gpu_hour=2.35&hosted=list"


async def test_the_unit_cost_is_a_form_and_then_a_table(visitor: Visitor, gateway: Gateway) -> None:
    """Labelled a model; per million in and out, by tenant, against hosted prices, with a plot."""
    await store(gateway.usage_postgres, rows())
    await visitor.log_in(Role.FINANCE)
    page = (await visitor.get(COST)).text
    assert "This is a model, not a measurement." in page
    assert "What tokens cost" not in page
    answer = await visitor.get(f"{COST}?{ASKED}&gpus=4")
    assert answer.status_code == 200, answer.text
    for shown in (
        "192.000000 GPU-hours at 2.35",
        "A million output tokens, all costs on them",
        "list:groq",
        'id="utilisation-data"',
        "acme",
        "Break-even utilisation",
    ):
        assert shown in answer.text, shown
    wrong = await visitor.get(f"{COST}?{ASKED}&gpus=many")
    assert wrong.status_code == 422
    assert 'id="f-gpus-error"' in wrong.text
    assert 'value="many"' in wrong.text
    assert (await visitor.get(f"{COST}?since=x")).status_code == 422


async def test_the_form_asks_for_a_week_that_today_is_a_part_of(
    visitor: Visitor, gateway: Gateway
) -> None:
    """What a new system did today is in it; and that no worker was seen is no misunderstanding."""
    await visitor.log_in(Role.FINANCE)
    page = (await visitor.get(COST)).text
    since, until = (
        datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
        for name in ("since", "until")
        if (found := re.search(rf'name="{name}"[^>]*value="([^"]*)"', page))
    )
    assert timedelta(0) <= datetime.now(UTC) - until < timedelta(minutes=2)
    assert until - since == timedelta(days=7)
    asked = (
        f"{COST}?since={since:%Y-%m-%dT%H:%M}&until={until:%Y-%m-%dT%H:%M}"
        "&price_per_gpu_hour=2.35&from_samples=1"
    )
    empty = await visitor.get(asked)
    assert empty.status_code == 422
    assert "There is no answer to this: see the fields below." in empty.text
    assert "no worker was seen in that time" in empty.text
    now = datetime.now(UTC)
    async with gateway.usage_postgres.begin() as db:
        await add_workers(db, ("seen-today", "m"))
        await add_samples(db, "seen-today", *(now - SINCE - timedelta(minutes=n) for n in (9, 8)))
    answer = await visitor.get(asked)
    assert answer.status_code == 200, answer.text
    assert "GPU-hours at 2.35" in answer.text


async def test_what_gateways_found_is_listed_with_details(
    visitor: Visitor, gateway: Gateway
) -> None:
    """Each check in words; only runs with findings where that is wanted."""
    at = datetime(2026, 11, 1, tzinfo=UTC)
    finding = Finding(Check.ATTEMPTS, "<b>acme</b>", None, 3, "tokens", "counted twice")
    found = Verdict(Check.ATTEMPTS, terms(records=9), (finding,))
    async with gateway.reconciling_postgres.begin() as db:
        for start, verdict in ((at, found), (at + timedelta(days=1), Verdict(Check.ROLLUPS))):
            await keep_run(
                db,
                Kind.DAY,
                start,
                start + timedelta(days=1),
                started_at=datetime.now(UTC),
                verdicts=[verdict],
            )
    await visitor.log_in(Role.FINANCE)
    page = (await visitor.get(f"{RECONCILED}?found=1")).text
    assert "counted twice" in page
    assert "nobody pays twice" in page
    assert "<b>acme" not in page
    assert "2026-11-02 00:00" in page
    assert "2026-11-03 00:00" not in page
    assert "2026-11-03 00:00" in (await visitor.get(RECONCILED)).text


async def test_a_period_is_reconciled_when_asked(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All seven checks; more than a day, or what is no time, is refused at its field."""
    await visitor.log_in(Role.FINANCE)
    await visitor.get(RECONCILED)
    asked = {"since": "2026-11-01T00:05", "until": "2026-11-01T03:00"}
    answer = await visitor.post(RECONCILED, asked)
    assert answer.status_code == 200, answer.text
    assert "2026-11-01 00:00" in answer.text
    for check in Check:
        assert f">{check}<" in answer.text
    assert "Everything that was compared agrees." in answer.text
    answer = await visitor.post(RECONCILED, {**asked, "until": "2026-11-03T00:00"})
    assert answer.status_code == 422
    assert 'id="f-until-error"' in answer.text
    assert 'value="2026-11-01T00:05"' in answer.text
    assert (await visitor.post(RECONCILED, {"since": "x", "until": ""})).status_code == 422

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("Postgres cannot be reached")

    monkeypatch.setattr("gateway.console.reconciliation.read_runs", away)
    page = (await visitor.get(RECONCILED)).text
    assert "What was found is not known right now." in page
