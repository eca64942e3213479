"""INV-7 on a whole system: every row costs what the price book says of its instant, to the pico."""

import time
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import asyncpg
from msgspec.structs import asdict
from weir_dev import Json, WeirDev

from billing.domain.price_book import Price, PriceBook
from billing.domain.rating import Cost, rate

WITHIN_S = 1.0
LEAD_S = 2.0


def price_of(shown: Json) -> Price:
    """A price as the API shows it."""

    def pico(text: str) -> int:
        return int(Decimal(text) * 10**6)

    begins = shown["effective_from"].replace("Z", "+00:00")
    cached = shown["cached_input"]
    return Price(
        id=shown["id"],
        model=shown["model"],
        provider=shown["provider"],
        currency=shown["currency"],
        input_pico=pico(shown["input"]),
        cached_input_pico=None if cached is None else pico(cached),
        output_pico=pico(shown["output"]),
        effective_from_ms=ms_of(begins),
    )


def ms_of(text: str) -> int:
    """Unix milliseconds of an instant."""
    instant = datetime.fromisoformat(text)
    return int(instant.timestamp()) * 1000 + instant.microsecond // 1000


def book_of(system: WeirDev) -> PriceBook:
    """The price book as the finance API lists it."""
    page = system.admin("GET", "/billing/v1/prices?limit=1000").json
    assert page["next_cursor"] is None
    return PriceBook(map(price_of, page["items"]))


def set_price(system: WeirDev, **body: Any) -> Price:
    """Set a price of the served model as finance does."""
    token = system.ready["users"]["finance"]["token"]
    url = system.gateway() + "/billing/v1/prices"
    reply = system.request("POST", url, {"model": system.model, **body}, token=token)
    assert reply.status == 201, reply.raw
    return price_of(reply.json)


def cost_of(row: asyncpg.Record, book: PriceBook) -> Cost:
    """What the row costs by the book."""
    return rate(
        book,
        model=row["model"],
        provider=row["provider"],
        currency=row["currency"],
        admitted_at_ms=ms_of(row["admitted_at"].isoformat()),
        prompt_tokens=row["prompt_tokens"],
        cached_tokens=row["cached_prompt_tokens"],
        output_tokens=row["output_tokens"],
        reasoning_tokens=row["reasoning_tokens"],
        billable=row["billable"],
    )


def assert_rated(rows: Sequence[asyncpg.Record], book: PriceBook) -> None:
    """Each row is as the book says."""
    for row in rows:
        expected = asdict(cost_of(row, book))
        assert {name: row[name] for name in expected} == expected, dict(row)


async def rows_of(system: WeirDev, ids: Sequence[str]) -> list[asyncpg.Record]:
    """The rows of these requests."""
    return [await system.record(each) for each in ids]


async def test_the_sum_of_a_tenants_rows_is_the_sum_of_rating_them(simulated: WeirDev) -> None:
    """Out of the box, with the prices of `weir dev`: completed, left midway, and cached prompts."""
    ids = []
    for index in range(4):
        reply = simulated.chat("Tell me of rivers. " * 40, gateway=index, max_tokens=8 + index)
        ids.append(reply.headers["x-request-id"])
    with simulated.open_chat(max_tokens=3000, stream=True) as connection:
        head = connection.recv(65536).decode().lower()
        ids.append(head.split("x-request-id: ")[1].split("\r\n")[0])
    rows, book = await rows_of(simulated, ids), book_of(simulated)
    assert_rated(rows, book)
    assert {row["outcome"] for row in rows} == {"completed", "client_cancelled"}
    assert all(row["price_id"] for row in rows)
    owed = [cost_of(row, book).cost_pico for row in rows]
    (summed,) = await simulated.sql(
        "SELECT sum(cost_pico) AS pico, count(*) AS rows FROM usage_records WHERE tenant_id = $1",
        simulated.tenant,
    )
    assert (int(summed["pico"]), summed["rows"]) == (sum(each or 0 for each in owed), len(ids))
    assert summed["pico"] > 0


async def test_a_price_holds_from_its_instant_on_every_gateway(simulated: WeirDev) -> None:
    """B20, V46: unpriced first, NULL and counted; then at the first price, then at the second: each
    row by its own arrival, on both gateways, also around the changes."""
    made = simulated.admin("PATCH", f"/admin/v1/tenants/{simulated.tenant}", {"currency": "KWD"})
    assert made.status == 200, made.raw
    ids: list[str] = []

    def serve(until: float) -> None:
        while time.monotonic() < until:
            for index in range(2):
                reply = simulated.chat(gateway=index, max_tokens=1)
                assert reply.status == 200, reply.raw
                ids.append(reply.headers["x-request-id"])

    serve(time.monotonic() + WITHIN_S)  # until every gateway bills it in dinars
    unpriced = ids[-1:]
    first = set_price(simulated, currency="KWD", input="0.5", output="1.5")
    serve(time.monotonic() + 3 * WITHIN_S)
    priced = ids[-2:]
    counted = len(ids)
    second = set_price(simulated, currency="KWD", input="0.000001", output="0")
    serve(time.monotonic() + LEAD_S + WITHIN_S)
    book = book_of(simulated)
    around, last = await rows_of(simulated, ids[counted:]), await rows_of(simulated, ids[-2:])
    assert_rated(around, book)
    assert {row["price_id"] for row in around} == {first.id, second.id}
    assert {row["price_id"] for row in last} == {second.id}
    assert {row["price_id"] for row in await rows_of(simulated, priced)} == {first.id}
    (row,) = await rows_of(simulated, unpriced)
    assert (row["cost_pico"], row["list_cost_pico"], row["price_id"]) == (None, None, None)
    assert (row["currency"], row["billable"]) == ("KWD", True)
    metrics = [
        simulated.request("GET", simulated.gateway(index) + "/metrics").raw.decode()
        for index in range(2)
    ]
    label = f'weir_unpriced_requests_total{{model="{simulated.model}",provider="self"}}'
    assert any(label in text for text in metrics)
