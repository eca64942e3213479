"""Usage and cost in buckets are the records' sums, whatever is rolled up and whatever is not."""

import random
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import pytest
from invoice_world import MODEL, InvoiceWorld

from billing.postgres.usage_buckets import (
    GROUPS,
    sum_costs,
    sum_spent,
    sum_tokens,
)
from billing.postgres.usage_sources import Chosen
from gateway.adapters.postgres import async_engine

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
WIDTHS = tuple(timedelta(minutes=minutes) for minutes in (1, 60, 1440))
FIELDS = (
    "admitted_at", *GROUPS, "currency", "billable", "final", "prompt_tokens",
    "cached_prompt_tokens", "output_tokens", "cost_pico",
)  # fmt: skip


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[InvoiceWorld]:
    """A database of this test's own, with prices of two models in two currencies."""
    engine = async_engine(database_url)
    world = InvoiceWorld(engine)
    await world.open()
    await world.price(
        currency="EUR", input_pico=3, output_pico=7, reasoning_pico=11, request_pico=5
    )
    yield world
    await engine.dispose()


async def use_some(world: InvoiceWorld, chance: random.Random) -> None:
    """Requests over two days, of which some have no price and some are nobody's to pay."""
    for _ in range(chance.randint(1, 12)):
        at = NOON + timedelta(minutes=chance.randint(-1500, 1500), seconds=chance.randint(0, 59))
        await world.use(
            at.isoformat(),
            currency=chance.choice(("USD", "EUR", None)),
            tenant_id=chance.choice("ab"),
            api_key_id=chance.choice("kl"),
            model=chance.choice((MODEL, "unpriced")),
            request_class=chance.choice(("interactive", "batch")),
            billable=chance.random() < 0.7,
            final=chance.random() < 0.7,
            reasoning_tokens=chance.randint(0, 2),
        )


async def records(world: InvoiceWorld, chosen: Chosen) -> list[dict[str, Any]]:
    """Every record that is meant, one by one."""
    rows = await world.query(f"SELECT {', '.join(FIELDS)} FROM usage_record")
    found = [dict(zip(FIELDS, row, strict=True)) for row in rows]
    return [
        each
        for each in found
        if chosen.since <= each["admitted_at"] < chosen.until
        and (chosen.tenants is None or each["tenant_id"] in chosen.tenants)
        and (chosen.api_keys is None or each["api_key_id"] in chosen.api_keys)
        and (chosen.models is None or each["model"] in chosen.models)
        and chosen.request_class in {None, each["class"]}
        and (chosen.currency is None or each["currency"] in {chosen.currency, None})
    ]


def place(record: dict[str, Any], width: timedelta, by: tuple[str, ...]) -> tuple[Any, ...]:
    """The bucket and group of a record."""
    at_s = int(record["admitted_at"].timestamp())
    return (at_s - at_s % int(width.total_seconds()), tuple(record[name] for name in by))


def summed(
    found: list[dict[str, Any]], width: timedelta, by: tuple[str, ...], *more: str
) -> dict[Any, list[int]]:
    """Requests, tokens, provisional, cost and unpriced of each place."""
    sums: dict[Any, list[int]] = defaultdict(lambda: [0] * 7)
    for each in found:
        key = (*place(each, width, by), *(each[name] for name in more))
        counts = (
            1, each["prompt_tokens"], each["cached_prompt_tokens"], each["output_tokens"],
            int(not each["final"]), each["cost_pico"] or 0,
            int(each["billable"] and each["cost_pico"] is None),
        )  # fmt: skip
        sums[key] = [have + more for have, more in zip(sums[key], counts, strict=True)]
    return dict(sums)


@pytest.mark.parametrize("seed", range(4))
async def test_buckets_say_what_the_records_say(world: InvoiceWorld, seed: int) -> None:
    """By each width and some groups, with all, some and no quarters rolled up, over periods with
    and without whole quarters, filtered by each thing."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    groups = [each for count in range(5) for each in combinations(GROUPS, count)]
    for _ in range(6):
        await use_some(world, chance)
        if chance.random() < 0.6:
            await world.roll_up(coarser=chance.random() < 0.7)
        for _ in range(12):
            since = NOON + timedelta(minutes=chance.randint(-1600, 1600), seconds=17)
            span = timedelta(minutes=chance.choice((1, 15, 16, 600, 3000)))
            chosen = Chosen(
                since=chance.choice((since, NOON)),
                until=max(since, NOON) + span,
                tenants=chance.choice((None, ("a",), ("a", "b"), ())),
                api_keys=chance.choice((None, None, ("k",))),
                models=chance.choice((None, None, (MODEL,))),
                request_class=chance.choice((None, None, "batch")),
                currency=chance.choice((None, "EUR")),
            )
            width, by = chance.choice(WIDTHS), chance.choice(groups)
            meant = await records(world, chosen)
            tokens = await world.read(sum_tokens, chosen, width=width, by=by)
            assert {
                (each.start_s, each.group): [
                    each.requests, each.prompt_tokens, each.cached_prompt_tokens,
                    each.output_tokens, each.provisional_requests,
                ]
                for each in tokens
            } == {key: counts[:5] for key, counts in summed(meant, width, by).items()}  # fmt: skip
            assert tokens == sorted(tokens, key=lambda each: (each.start_s, each.group))
            costs: dict[Any, list[int]] = defaultdict(lambda: [0] * 7)
            for each in await world.read(sum_costs, chosen, width=width, by=by):
                key = (each.start_s, each.group, each.model, each.currency, each.billable)
                counts = (
                    each.requests, each.prompt_tokens, each.cached_prompt_tokens,
                    each.output_tokens, each.provisional_requests, each.cost_pico,
                    each.unpriced_requests,
                )  # fmt: skip
                costs[key] = [have + more for have, more in zip(costs[key], counts, strict=True)]
            assert costs == summed(meant, width, by, "model", "currency", "billable")
            spent = await world.read(sum_spent, chosen)
            assert sum(each.cost_pico for each in spent) == sum(
                each["cost_pico"] or 0 for each in meant
            )


async def test_a_group_that_is_none_is_refused(world: InvoiceWorld) -> None:
    """Names of groups become a part of the statement: no others do."""
    with pytest.raises(ValueError, match="not grouped"):
        await world.read(
            sum_tokens, Chosen(since=NOON, until=NOON), width=WIDTHS[1], by=("1; DROP TABLE x",)
        )
