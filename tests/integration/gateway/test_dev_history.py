"""`weir dev --history`: a month of usage that is made up once, is priced, and says what it is."""

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hosted_examples import a_provider
from servers import flush
from sqlalchemy import text

from billing.domain.invoicing.simulated import SIMULATED_NOTE
from gateway.adapters.births import Births, history_in
from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import connect_redis
from gateway.administration import Administration, NewPrice
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.dev_history import prices_since_ms, remember_store, seed_history
from gateway.dev_hosted import NONE, SIMULATED
from gateway.dev_prices import seed_prices
from gateway.dev_seller import _nothing_expected
from gateway.domain.tenant import Model, RequestClass

NOW = datetime(2026, 3, 1, 0, 0, 1, tzinfo=UTC)
"""The second after its month ended."""
MODELS = [Model(id="m", context_tokens=2048, max_output_tokens=512)]
TENANTS = ("globex", "initech")
HOSTED_ALLOWED = {"data_policy": "hosted_allowed"}
SELF_HOSTED_ONLY = {"data_policy": "self_hosted_only"}


class World:
    """A fresh database with two tenants of a key for each class. Prompts of globex may leave, but
    for those of a third key."""

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url
        self.engine = async_engine(database_url)
        self.administration = Administration(self.engine)

    async def open(self) -> None:
        made = self.administration
        await made.register_model("weir dev", MODELS[0])
        await made.register_hosted_provider("weir dev", a_provider(SIMULATED))
        for tenant_id in TENANTS:
            await made.create_tenant("weir dev", tenant_id, tenant_id)
            for each in RequestClass:
                await made.create_key("weir dev", tenant_id, each, each)
        await made.change_tenant_limits("weir dev", "globex", HOSTED_ALLOWED)
        await made.create_key(
            "weir dev", "globex", "kept", RequestClass.BATCH, limits=SELF_HOSTED_ONLY
        )

    async def seed(self, *, hosted: str = SIMULATED, now: datetime = NOW) -> dict[str, int]:
        """As a start does."""
        since_ms = prices_since_ms(now)
        await seed_prices(self.administration, MODELS, hosted=hosted, since_ms=since_ms)
        return await seed_history(self.database_url, TENANTS, MODELS, hosted=hosted, now=now)

    async def query(self, statement: str) -> list[Any]:
        """Rows of it."""
        async with self.engine.connect() as db:
            return list((await db.execute(text(statement))).all())


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[World]:
    """That database."""
    made = World(database_url)
    await made.open()
    yield made
    await made.engine.dispose()


async def test_a_month_of_both_tenants_once(world: World) -> None:
    """All within it, priced, flagged, of a gateway that never ran; a second start writes nothing,
    nor does one in a later month."""
    assert await world.seed() == {"globex": 3000, "initech": 3000}
    rows = await world.query("SELECT * FROM usage_record ORDER BY request_id")
    assert len(rows) == 6000
    assert {(row.gateway_id, row.boot, tuple(row.usage_flags)) for row in rows} == {
        ("history", None, ("simulated",))
    }
    assert min(row.admitted_at for row in rows) >= datetime(2026, 2, 1, tzinfo=UTC)
    assert max(row.ended_at for row in rows) < datetime(2026, 3, 1, tzinfo=UTC)
    assert all(row.price_id is not None and row.list_cost_pico > 0 for row in rows)
    assert not [row for row in rows if row.prompt_tokens + row.output_tokens > 2048]
    for column, least in (
        ("class", {"interactive", "batch"}),
        ("provider", {"self", "hosted:simulated"}),
        ("outcome", {"completed", "client_cancelled", "worker_failed", "timed_out"}),
        ("billable", {True, False}),
    ):
        assert {getattr(row, column) for row in rows} == least, column
    assert Counter(row.tenant_id for row in rows) == {"globex": 3000, "initech": 3000}
    assert len({row.api_key_id for row in rows}) == 5
    cached = sum(row.cached_prompt_tokens for row in rows) / sum(row.prompt_tokens for row in rows)
    assert 0.3 < cached < 0.7
    nothing = {"globex": 0, "initech": 0}
    assert await world.seed() == nothing
    assert await world.seed(now=datetime(2026, 4, 2, tzinfo=UTC)) == nothing
    assert await world.query("SELECT * FROM usage_record ORDER BY request_id") == rows


async def test_what_may_not_leave_did_not(world: World) -> None:
    """INV-13: nothing hosted of a tenant or a key whose data policy forbids it."""
    await world.seed()
    hosted = await world.query(
        "SELECT DISTINCT usage_record.tenant_id, api_key.name FROM usage_record"
        " JOIN api_key ON api_key.id = api_key_id WHERE provider <> 'self' ORDER BY 2"
    )
    assert [tuple(row) for row in hosted] == [("globex", "batch"), ("globex", "interactive")]


async def test_the_same_each_time(world: World) -> None:
    """What is drawn is of the tenant and the month alone, but for the keys and the price's id."""
    await world.seed()
    columns = "request_id, class, prompt_tokens, cached_prompt_tokens, output_tokens, cost_pico"
    drawn = f"SELECT {columns} FROM usage_record ORDER BY 1"
    before = await world.query(drawn)
    async with world.engine.begin() as db:
        await db.execute(text("TRUNCATE usage_record, usage_attempt"))
    await world.seed()
    assert await world.query(drawn) == before


async def test_its_price_gives_way_to_one_that_is_there(world: World) -> None:
    """B26: a price that began lately still holds from then on; the made-up one fills the gap before
    it, and where nothing is hosted none is made up for it."""
    mine = NewPrice(
        model="m", currency="USD", input_pico=7, cached_input_pico=None, output_pico=7
    )  # fmt: skip
    kept = await world.administration.set_price("me", mine)
    await world.seed(hosted=NONE)
    prices = (await world.administration.list_prices()).items
    assert kept in prices
    assert len(prices) == 2
    (earlier,) = (each for each in prices if each != kept)
    assert earlier.effective_from_ms < kept.effective_from_ms
    used = await world.query("SELECT DISTINCT price_id, provider FROM usage_record")
    assert used == [(earlier.id, "self")]


async def test_its_invoice_says_so_and_no_other(world: World) -> None:
    """On the document, in the list, while it is a draft, which has lines of the fleet and of the
    provider; a month of nothing says nothing."""
    await world.seed()
    desk = InvoiceDesk(world.engine, _nothing_expected)
    drafted = await desk.draft("me", "globex", "2026-02")
    empty = await desk.draft("me", "globex", "2026-01")
    _, document = await desk.document(await desk.invoice_id("globex/2026-02"))
    assert document.notes == (SIMULATED_NOTE,)
    assert {line.provider for line in document.lines} == {"self", "hosted:simulated"}
    assert (drafted["simulated"], empty["simulated"]) == (True, False)
    listed = {each["id"]: each["simulated"] for each in (await desk.page()).items}
    assert listed == {drafted["id"]: True, empty["id"]: False}


async def test_usage_that_is_made_up_is_no_past_that_a_store_has_lost(
    world: World, redis_url: str
) -> None:
    """Its first gateway serves what has limits at once; a store that is emptied later has lost."""
    redis = connect_redis(redis_url, timeout_ms=1000)
    births = partial(Births, redis, history_in(world.engine))
    try:
        await remember_store(world.database_url, redis_url)
        await world.seed()
        assert await births().born_ms("globex") == 0
        flush(redis_url)
        await remember_store(world.database_url, redis_url)
        assert await births().born_ms("globex") > 0
    finally:
        await redis.aclose()
