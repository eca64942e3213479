"""What had no price is rated once there is one for its time, once, and nothing else is."""

import asyncio
import time
from typing import Any
from uuid import UUID

import pytest
from usage_examples import a_record, an_admission

from billing.domain.reconciliation.replay import Altered
from billing.domain.usage_record import UsageRecord
from billing.postgres.rate_later import rate_all, rate_rolled_up
from billing.postgres.reconcile_records import replay
from billing.postgres.usage_insert import JournaledRecord, insert_batch
from gateway.adapters import reconciling
from gateway.adapters.reconciler import Reconciler
from gateway.administration import Administration, NewPrice
from gateway.domain.tenant import Model

HOUR_MS = 3_600_000
MODEL = "smollm2-135m"
# 8 prompt tokens at 1.00, 4 cached at 0.10, 20 of output at 4.00, all per million.
COST = 8 * 1_000_000 + 4 * 100_000 + 20 * 4_000_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def unpriced(ago_ms: int, **changes: Any) -> UsageRecord:
    """A request of that long ago that nobody had a price for."""
    admission = an_admission(at_ms=now_ms() - ago_ms, tenant_id="initech")
    return a_record(admission, **{"currency": "USD", **changes})


async def store(books: Any, *records: UsageRecord) -> list[JournaledRecord]:
    rows = [JournaledRecord(each, "gw-1", 7, seq) for seq, each in enumerate(records, 1)]
    async with books.engine.begin() as db:
        await insert_batch(db, rows)
    return rows


@pytest.fixture
async def administration(books: Any) -> Administration:
    """The verbs on the books' database, which knows the model and a tenant."""
    made = Administration(books.engine)
    await made.register_model(
        "cli:test", Model(id=MODEL, context_tokens=2048, max_output_tokens=512)
    )
    await made.create_tenant("cli:test", "initech", name="Initech")
    return made


async def set_price(administration: Administration, ago_ms: int, **changes: Any) -> int:
    """A price of so long ago; its id."""
    wanted: dict[str, Any] = {
        "model": MODEL,
        "currency": "USD",
        "input_pico": 1_000_000,
        "cached_input_pico": 100_000,
        "output_pico": 4_000_000,
    }
    price = await administration.set_price(
        "cli:test", NewPrice(**wanted | changes), effective_from_ms=now_ms() - ago_ms
    )
    return price.id


async def costs(books: Any) -> dict[UUID, tuple[Any, ...]]:
    """Of each row: price, costs and flags."""
    rows = await books.query(
        "SELECT request_id, price_id, cost_pico, list_cost_pico, usage_flags FROM usage_record"
        " WHERE gateway_id = 'gw-1'"
    )
    return {row[0]: tuple(row[1:]) for row in rows}


@pytest.mark.parametrize("rate", [rate_all, rate_rolled_up])
async def test_what_was_unpriced_gets_the_price_of_its_time(
    books: Any, administration: Administration, rate: Any
) -> None:
    """B20, V47: those before the price still have none. What is nobody's to pay, provisional,
    priced already, or of another currency stays as it is. A second time there is nothing to do."""
    late, early = unpriced(HOUR_MS, usage_flags=("counted",)), unpriced(3 * HOUR_MS)
    others = [
        unpriced(HOUR_MS, billable=False, cost_pico=0),
        unpriced(HOUR_MS, final=False),
        unpriced(HOUR_MS, price_id=99, cost_pico=5, list_cost_pico=5),
        unpriced(HOUR_MS, currency="EUR"),
        unpriced(HOUR_MS, currency=None, tenant_id="nobody"),
        unpriced(HOUR_MS, model="other"),
        unpriced(HOUR_MS, provider="hosted:x"),
    ]
    await store(books, late, early, *others)
    await books.roll_up()
    before = await costs(books)
    assert await rate(books.engine) == 0
    price_id = await set_price(administration, 2 * HOUR_MS)
    assert await rate(books.engine) == 1
    after = await costs(books)
    assert after.pop(late.request_id) == (price_id, COST, COST, ["counted", "rated_later"])
    del before[late.request_id]
    assert after == before
    assert await rate(books.engine) == 0
    await books.roll_up()
    rolled = await books.query(
        "SELECT sum(cost_pico)::bigint, sum(unpriced_requests)::bigint FROM usage_rollup"
    )
    raw = await books.query(
        "SELECT sum(cost_pico)::bigint, count(*) FILTER (WHERE cost_pico IS NULL) FROM usage_record"
    )
    assert rolled == raw


@pytest.mark.parametrize("rate", [rate_all, rate_rolled_up])
async def test_what_has_no_currency_is_rated_in_its_tenants(
    books: Any, administration: Administration, rate: Any
) -> None:
    """Of a release that knew none: it holds up no invoice for ever. Who waits for a price is told
    in which currency; its journal, which has none, is no witness against it."""
    rows = await store(books, unpriced(3 * HOUR_MS, currency=None), unpriced(HOUR_MS))
    await books.roll_up()
    await set_price(administration, 2 * HOUR_MS)
    assert await rate(books.engine) == 1
    waiting = (await administration.rate_unpriced("cli:test")).unpriced
    (left,) = [each for each in waiting if each.tenant_id == "initech"]
    assert (left.tenant_id, left.currency, left.requests) == ("initech", "USD", 1)
    price_id = await set_price(administration, 4 * HOUR_MS)
    assert await rate(books.engine) == 1
    (row,) = await books.query(
        f"SELECT currency, price_id, cost_pico, usage_flags FROM usage_record"
        f" WHERE request_id = '{rows[0].record.request_id}'"
    )
    assert tuple(row) == ("USD", price_id, COST, ["rated_later"])
    await books.roll_up()
    rolled = await books.query(
        "SELECT DISTINCT currency, unpriced_requests FROM usage_rollup WHERE tenant_id = 'initech'"
    )
    assert [tuple(each) for each in rolled] == [("USD", 0)]
    assert await replay(books.engine, rows) == []


async def test_each_is_rated_as_its_gateway_would_have(
    books: Any, administration: Administration
) -> None:
    """At the tenant's, the plan's and the class's price, by its arrival, also where the price
    began or ended within its quarter of an hour."""
    records = [
        unpriced(2 * HOUR_MS, request_class="batch"),
        unpriced(2 * HOUR_MS),
        unpriced(2 * HOUR_MS + 10 * 60_000),
    ]
    await store(books, *records)
    own = await set_price(
        administration,
        2 * HOUR_MS + 1_000,
        tenant_id="initech",
        request_class="batch",
        reasoning_pico=1,
        request_pico=7,
    )
    listed = await set_price(administration, 2 * HOUR_MS + 500)
    assert await rate_all(books.engine) == 2
    found = await costs(books)
    assert [found[each.request_id][0] for each in records] == [own, listed, None]
    assert found[records[0].request_id][1] == COST + 7


async def test_a_journal_that_ships_again_changes_nothing_and_is_not_told_of(
    books: Any, administration: Administration
) -> None:
    """REC-7: it knows of no price. What else was changed is found all the same."""
    rows = await store(books, unpriced(HOUR_MS), unpriced(HOUR_MS))
    await set_price(administration, 2 * HOUR_MS)
    assert await rate_all(books.engine) == 2
    rated = await costs(books)
    assert await replay(books.engine, rows) == []
    async with books.engine.begin() as db:
        assert await insert_batch(db, rows) == 0
    assert await costs(books) == rated
    await books.sql(
        "UPDATE usage_record SET output_tokens = 21 WHERE seq = 1 AND gateway_id = 'gw-1'"
    )
    (altered,) = await replay(books.engine, rows)
    assert isinstance(altered, Altered)
    assert (altered.column, altered.stored) == ("output_tokens", "21")


async def test_a_price_that_nobody_rated_later_is_found(
    books: Any, administration: Administration
) -> None:
    """REC-7: without the flag a price that its journal does not know was put there by hand."""
    rows = await store(books, unpriced(HOUR_MS))
    await books.sql("UPDATE usage_record SET price_id = 1, cost_pico = 1 WHERE gateway_id = 'gw-1'")
    found = await replay(books.engine, rows)
    columns = [each.column for each in found if isinstance(each, Altered)]
    assert columns == ["price_id", "cost_pico"]


async def test_pages_and_many_at_once(
    books: Any, administration: Administration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row once, whoever rates it: three at once over pages of two rows."""
    monkeypatch.setattr("billing.postgres.rate_later.ROWS_AT_ONCE", 2)
    same = now_ms() - HOUR_MS
    records = [
        a_record(an_admission(at_ms=same + at // 3), currency="USD", tenant_id="initech")
        for at in range(9)
    ]
    await store(books, *records)
    await set_price(administration, 2 * HOUR_MS)
    done = await asyncio.gather(*(rate_all(books.engine) for _ in range(3)))
    assert sum(done) == 9
    assert {row[1] for row in (await costs(books)).values()} == {COST}


async def test_what_is_to_come_is_not_rated(books: Any, administration: Administration) -> None:
    """A clock that is ahead: its price may not be written yet."""
    await store(books, unpriced(-30_000))
    await set_price(administration, HOUR_MS)
    assert await rate_all(books.engine) == 0


async def test_a_gateway_does_it_by_itself(
    books: Any, administration: Administration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it does each minute, once the roll-ups know of it."""
    monkeypatch.setattr(reconciling, "RATE_PERIOD_S", 0.01)
    monkeypatch.setattr(reconciling, "ROLL_UP_PERIOD_S", 0.01)
    await store(books, unpriced(HOUR_MS))
    await set_price(administration, 2 * HOUR_MS)
    gateway = reconciling.Reconciling(books.engine, Reconciler(books.engine, None))
    running = asyncio.create_task(gateway.run())
    while [row[1] for row in (await costs(books)).values()] != [COST]:
        await asyncio.sleep(0.02)
        assert not running.done()
    running.cancel()


async def test_the_command_says_what_is_left(books: Any, administration: Administration) -> None:
    """`weir price rate`: how many, and who waits for which price; the audit log has it."""
    await store(books, unpriced(HOUR_MS), unpriced(HOUR_MS, model="other"))
    await set_price(administration, 2 * HOUR_MS)

    def rate() -> Any:
        return books.weir.json("price", "rate")

    said = await asyncio.to_thread(rate)
    (left,) = [each for each in said["unpriced"] if each["currency"] is not None]
    assert said["rated"] == 1
    assert (left["tenant_id"], left["model"], left["requests"]) == ("initech", "other", 1)
    entry = (await administration.list_audit(1)).items[0]
    assert (entry.action, entry.after) == ("price.rate", {"requests": 1})
    table = await asyncio.to_thread(lambda: books.weir.ok("price", "rate"))
    assert table.splitlines()[0] == "rated: 0"
    assert ["initech", "other"] in [line.split()[:2] for line in table.splitlines()[1:]]
