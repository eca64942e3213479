"""The directory in memory follows Postgres: nothing missed, nothing late, through outages."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hosted_examples import a_provider
from postgres_proxy import PostgresProxy, postgres_proxy
from servers import eventually
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.directory import CachedDirectory
from gateway.adapters.directory_content import DirectoryChange
from gateway.adapters.postgres import async_engine
from gateway.administration import Administration, NewPrice
from gateway.domain.tenant import Limits, Model, Worker
from gateway.errors import StoreUnavailable

ME = "cli:test"
NEW_TENANT = "INSERT INTO tenant (id, name, currency, time_zone) VALUES (:id, 'T', 'USD', 'UTC')"


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on this test's database."""
    made = async_engine(database_url, pool_size=12)
    yield made
    await made.dispose()


@pytest.fixture
async def administration(engine: AsyncEngine) -> Administration:
    """What changes the directory, with the model `m` and the tenant `acme`."""
    made = Administration(engine)
    await made.register_model(ME, Model(id="m", context_tokens=2048, max_output_tokens=512))
    await made.create_tenant(ME, "acme", "Acme", Limits(tpm=5))
    return made


@pytest.fixture
async def directory(
    engine: AsyncEngine, administration: Administration
) -> AsyncIterator[CachedDirectory]:
    """A directory that follows at a gateway's own pace."""
    made = CachedDirectory(engine)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[PostgresProxy]:
    """A proxy in front of this test's database."""
    async with postgres_proxy(database_url) as started:
        yield started


async def test_changes_are_seen_within_a_second(
    administration: Administration, directory: CachedDirectory
) -> None:
    """Limits, keys, revocations, suspensions, and the fleet with hosted providers: in 1 s each."""
    key, secret = await administration.create_key(ME, "acme", "k", "batch")
    digest = hashlib.sha256(secret.encode()).digest()
    await eventually(lambda: directory.key_by_digest(digest) == key, within_s=1)

    limited = await administration.put_tenant_limits(ME, "acme", Limits(max_sequences=1))
    await eventually(lambda: directory.tenant("acme") == limited, within_s=1)

    revoked = await administration.revoke_key(ME, key.id)
    await eventually(lambda: directory.key_by_digest(digest) == revoked, within_s=1)

    suspended = await administration.update_tenant(ME, "acme", suspended=True)
    await eventually(lambda: directory.tenant("acme") == suspended, within_s=1)

    worker = Worker(id="w", model="m", url="http://h:1", api_key="secret")
    await administration.register_worker(ME, worker)
    await eventually(lambda: directory.workers("m") == [worker], within_s=1)
    assert directory.workers("other") == []
    await administration.remove_worker(ME, "w")
    await eventually(lambda: directory.workers() == [], within_s=1)

    provider = await administration.register_hosted_provider(ME, a_provider(), api_key="secret")
    await eventually(lambda: directory.hosted_providers() == [provider], within_s=1)
    disabled = a_provider(enabled=False, api_key="secret")
    assert await administration.register_hosted_provider(ME, disabled) == disabled
    await eventually(lambda: directory.hosted_providers() == [disabled], within_s=1)
    await administration.remove_hosted_provider(ME, provider.name)
    await eventually(lambda: directory.hosted_providers() == [], within_s=1)

    assert directory.models() == [Model(id="m", context_tokens=2048, max_output_tokens=512)]
    assert directory.model("m") == directory.models()[0]
    assert directory.model("gpt-5") is None
    assert directory.tenant("nobody") is None
    assert directory.key_by_digest(b"\0" * 32) is None


async def test_a_new_price_is_seen_within_a_second(
    administration: Administration, directory: CachedDirectory
) -> None:
    """Also one that begins later; what holds is by the request's own instant."""
    assert directory.price_book().price_at("m", "self", "USD", 2**53) is None
    fields: dict[str, Any] = {
        "model": "m",
        "currency": "USD",
        "cached_input_pico": None,
        "output_pico": 2,
    }
    first = await administration.set_price(ME, NewPrice(input_pico=1, **fields))
    at_ms = first.effective_from_ms
    await eventually(
        lambda: directory.price_book().price_at("m", "self", "USD", at_ms) == first, within_s=1
    )
    later = await administration.set_price(ME, NewPrice(input_pico=5, **fields))
    await eventually(
        lambda: directory.price_book().price_at("m", "self", "USD", 2**53) == later, within_s=1
    )
    book = directory.price_book()
    assert book.price_at("m", "self", "USD", later.effective_from_ms - 1) == first
    assert book.price_at("m", "self", "USD", at_ms - 1) is None
    assert directory.price_book() is book, "made once, not for each request"


async def test_prices_of_a_tenant_and_plans_are_followed(
    administration: Administration, directory: CachedDirectory
) -> None:
    """A plan alone makes a new book, too."""
    listed: Any = {"model": "m", "currency": "USD", "cached_input_pico": None, "output_pico": 2}
    batch = {**listed, "request_class": "batch", "input_pico": 2}
    own = await administration.set_price(ME, NewPrice(tenant_id="acme", **batch))
    gold = await administration.set_price(ME, NewPrice(input_pico=3, plan="gold", **listed))
    await eventually(lambda: _price_of(directory, "batch") == own.id, within_s=1)
    assert _price_of(directory, "interactive") is None
    await administration.set_plan(ME, "acme", "gold")
    await eventually(lambda: _price_of(directory, "interactive") == gold.id, within_s=1)


def _price_of(directory: CachedDirectory, request_class: str) -> int | None:
    asked = {"tenant_id": "acme", "request_class": request_class}
    price = directory.price_book().price_at("m", "self", "USD", 2**53, **asked)
    return None if price is None else price.id


async def test_prices_survive_a_whole_load(
    administration: Administration, engine: AsyncEngine
) -> None:
    """More than one batch of them; a gateway loads all again after each outage."""
    async with engine.begin() as db:
        await db.execute(
            text(
                "INSERT INTO price (model, provider, currency, input_pico, output_pico,"
                " effective_from) SELECT 'm', 'self', 'USD', each, 0,"
                " timestamptz '2099-01-01T00:00:00Z' + make_interval(secs => each)"
                " FROM generate_series(1, 250) each"
            )
        )
    directory = CachedDirectory(engine)
    for _ in range(2):
        await directory.refresh()
        found = directory.price_book().price_at("m", "self", "USD", 2**53)
        assert found is not None
        assert found.input_pico == 250
        directory._whole = False


async def test_listeners_hear_of_every_change(
    administration: Administration, engine: AsyncEngine
) -> None:
    """The first load is whole, later ones name what changed; a listener's bug stops nothing."""
    heard: list[DirectoryChange] = []

    def broken(_change: DirectoryChange) -> None:
        raise ValueError("a bug")

    directory = CachedDirectory(engine)
    directory.on_change += [broken, heard.append]
    await directory.refresh()
    await directory.refresh()
    assert [(change.whole, len(change.tenants)) for change in heard] == [(True, 1)]
    limited = await administration.put_tenant_limits(ME, "acme", Limits(rpm=2))
    await directory.refresh()
    assert [(change.whole, change.tenants) for change in heard[1:]] == [(False, [limited])]


async def test_an_uncommitted_change_holds_back_all_later_ones(
    engine: AsyncEngine, administration: Administration, directory: CachedDirectory
) -> None:
    """A writer with a lower number that commits late is still seen: none with a higher number can
    commit before it."""
    async with engine.connect() as early, engine.connect() as late:
        await early.execute(text(NEW_TENANT), {"id": "early"})
        later = asyncio.create_task(late.execute(text(NEW_TENANT), {"id": "late"}))
        for _ in range(3):
            await directory.refresh()
        assert not later.done()
        assert directory.tenant("early") is None
        await early.commit()
        await later
        await directory.refresh()
        assert directory.tenant("early") is not None
        assert directory.tenant("late") is None
        await late.commit()
    await directory.refresh()
    assert directory.tenant("late") is not None


async def test_no_interleaving_of_writers_hides_a_change(
    engine: AsyncEngine, administration: Administration
) -> None:
    """Eight writers in transactions of uneven length; at each of the poller's looks it holds all
    rows up to the number it has reached."""
    directory = CachedDirectory(engine)
    looks: list[tuple[int, set[str]]] = []

    async def write(writer: int) -> None:
        for number in range(15):
            async with engine.begin() as db:
                await db.execute(text(NEW_TENANT), {"id": f"w{writer}-{number}-a"})
                await asyncio.sleep(0.001 * ((writer + number) % 3))
                await db.execute(text(NEW_TENANT), {"id": f"w{writer}-{number}-b"})

    async def poll(writers: "asyncio.Future[list[None]]") -> None:
        last = False
        while not last:
            last = writers.done()
            await directory.refresh()
            looks.append((directory._seen, set(directory._content.tenants)))

    writers = asyncio.gather(*(write(number) for number in range(8)))
    await asyncio.gather(writers, poll(writers))
    async with engine.connect() as db:
        rows = list(await db.execute(text("SELECT id, changed FROM tenant")))
    assert len(rows) == 1 + 8 * 15 * 2
    assert len({seen for seen, _ in looks}) > 10
    for seen, held in looks:
        assert held == {row.id for row in rows if row.changed <= seen}


async def test_without_postgres_lookups_go_on_from_memory(
    administration: Administration, proxy: PostgresProxy
) -> None:
    """Age grows while it is away; when it is back, everything is read again."""
    engine = async_engine(proxy.url)
    directory = CachedDirectory(engine, poll_ms=20)
    changes: list[DirectoryChange] = []
    directory.on_change.append(changes.append)
    await directory.start()
    await proxy.refuse()
    changed = await administration.put_tenant_limits(ME, "acme", Limits(tpm=6))
    await eventually(lambda: directory.age_ms > 100)
    tenant = directory.tenant("acme")
    assert tenant is not None
    assert tenant.limits.tpm == 5
    await proxy.start()
    await eventually(lambda: directory.tenant("acme") == changed)
    await eventually(lambda: directory.age_ms < 100)
    assert [change.whole for change in changes] == [True, True]
    await directory.stop()
    await engine.dispose()


async def test_a_directory_does_not_start_without_postgres(free_port: int) -> None:
    """StoreUnavailable: a gateway that knows no key could only refuse all."""
    engine = async_engine(f"postgresql://nobody@127.0.0.1:{free_port}/none")
    with pytest.raises(StoreUnavailable):
        await CachedDirectory(engine).start()
    await engine.dispose()


async def test_what_an_older_backup_lacks_is_forgotten(
    engine: AsyncEngine, administration: Administration
) -> None:
    """Where the numbers have gone back, a tenant that is no longer there is known no more."""
    directory = CachedDirectory(engine)
    await directory.refresh()
    await administration.create_tenant(ME, "newer", "T")
    await directory.refresh()
    assert directory.tenant("newer") is not None
    async with engine.begin() as db:
        await db.execute(text("ALTER TABLE tenant DISABLE TRIGGER ALL"))
        await db.execute(text("DELETE FROM tenant WHERE id = 'newer'"))
        await db.execute(text("ALTER TABLE tenant ENABLE TRIGGER ALL"))
    await directory.refresh()
    assert directory.tenant("newer") is None
    assert directory.tenant("acme") is not None


async def test_a_row_of_a_later_release_is_refused_not_guessed(
    engine: AsyncEngine, administration: Administration
) -> None:
    """A limit that this release does not know would not be enforced, so the tenant is left out."""
    directory = CachedDirectory(engine)
    await directory.refresh()
    async with engine.begin() as db:
        await db.execute(text("UPDATE tenant SET limits = jsonb_build_object('max_dreams', 1)"))
    await directory.refresh()
    assert directory.tenant("acme") is None
    await administration.create_tenant(ME, "globex", "T")
    await directory.refresh()
    assert directory.tenant("globex") is not None


async def test_ten_thousand_tenants_load_quickly(
    engine: AsyncEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    """With two keys each: in seconds, without holding up the event loop for long."""
    async with engine.begin() as db:
        await db.execute(
            text(
                "INSERT INTO tenant (id, name, currency, time_zone, limits) "
                "SELECT 't' || i, 'T', 'USD', 'UTC', jsonb_build_object('tpm', i % 7) "
                "FROM generate_series(1, 10000) i"
            )
        )
        await db.execute(
            text(
                "INSERT INTO api_key (id, tenant_id, name, class, digest, secret_hint) "
                "SELECT 'key_' || i, 't' || (i % 10000 + 1), 'k', 'batch', "
                "sha256(cast(cast(i AS text) AS bytea)), 'abcd' FROM generate_series(1, 20000) i"
            )
        )
    stalls_s: list[float] = []

    async def watch() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.001)
            stalls_s.append(time.monotonic() - before)

    watching = asyncio.create_task(watch())
    directory = CachedDirectory(engine)
    began = time.monotonic()
    await directory.refresh()
    loaded_s = time.monotonic() - began
    began = time.monotonic()
    for _ in range(20):
        await directory.refresh()
    polled_ms = (time.monotonic() - began) * 1000 / 20
    watching.cancel()
    with capsys.disabled():
        print(  # noqa: T201 - the figure is what the test is for
            f"\n10,000 tenants and 20,000 keys: loaded in {loaded_s:.2f} s, longest stall "
            f"{max(stalls_s) * 1000:.0f} ms, a poll {polled_ms:.1f} ms"
        )
    assert directory.tenant("t10000") is not None
    assert directory.key_by_digest(hashlib.sha256(b"20000").digest()) is not None
    assert loaded_s < 10
