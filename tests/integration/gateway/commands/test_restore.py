"""`weir restore`, where there is nothing to say, or nobody to ask; and numbers that are lost."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from reaping import Everyone, Graves, graves
from servers import free_port
from sqlalchemy import text

from gateway.adapters.postgres_past import RestoreWatch


@pytest.fixture
async def system(database_url: str, redis_url: str) -> AsyncIterator[Graves]:
    """Empty stores of this test's own."""
    async with graves(database_url, redis_url) as made:
        yield made


def weir(*arguments: str, database_url: str, redis_url: str | None) -> tuple[int, str]:
    """Status and all that it says."""
    environment = {"PATH": "", "WEIR_DATABASE_URL": database_url}
    if redis_url is not None:
        environment["WEIR_REDIS_URL"] = redis_url
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "restore", *arguments],
        env=environment,
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_with_nothing_lost(database_url: str, redis_url: str) -> None:
    """It says so; there is nothing to confirm, and no price to put back."""
    stores = {"database_url": database_url, "redis_url": redis_url}
    assert weir("check", **stores) == (0, "Postgres holds all that is known of it\n")
    status, said = weir("confirm", **stores)
    assert (status, said) == (2, "weir: no changes are known to be lost\n")
    status, said = weir("prices", "--json", **stores)
    assert (status, json.loads(said)) == (0, {"price_entry": [], "plan_member": []})


def test_a_store_that_is_away_is_one_line(database_url: str, redis_url: str) -> None:
    """Of either; without a Redis nothing is remembered."""
    nobody = f"127.0.0.1:{free_port()}"
    for stores, expected in (
        ({"database_url": database_url, "redis_url": None}, 2),
        ({"database_url": database_url, "redis_url": f"redis://{nobody}"}, 1),
        ({"database_url": f"postgresql://u@{nobody}/x", "redis_url": redis_url}, 1),
    ):
        status, said = weir("check", **stores)
        assert (status, len(said.splitlines())) == (expected, 1), said
        assert said.startswith("weir: ")


async def test_numbers_that_customers_have_already(
    system: Graves, database_url: str, redis_url: str
) -> None:
    """Those that are lost are named, by series."""
    watch = RestoreWatch(system.redis, system.engine, Everyone(), kept_ms=3_600_000)
    for statement in (
        "INSERT INTO invoice_number VALUES ('INV-2026-', 7), ('CN-2026-', 2)",
        "UPDATE invoice_number SET last = 5 WHERE series = 'INV-2026-'",
    ):
        async with system.engine.begin() as db:
            await db.execute(text("ALTER TABLE invoice_number DISABLE TRIGGER USER"))
            await db.execute(text(statement))
            await db.execute(text("ALTER TABLE invoice_number ENABLE TRIGGER USER"))
        await watch.turn()
    status, said = weir("check", "--json", database_url=database_url, redis_url=redis_url)
    assert status == 1
    assert json.loads(said)["numbers"] == [{"series": "INV-2026-", "had": 7, "has": 5}]
    status, said = weir("check", database_url=database_url, redis_url=redis_url)
    assert (status, said.splitlines()[-1].split()) == (1, ["INV-2026-", "7", "5"])
    status, said = weir("confirm", "--json", database_url=database_url, redis_url=redis_url)
    assert (status, json.loads(said)["numbers"][0]["had"]) == (0, 7)
    assert weir("check", database_url=database_url, redis_url=redis_url)[0] == 0


async def test_prices_that_nobody_wants_back(
    system: Graves, database_url: str, redis_url: str
) -> None:
    """A new Postgres beside an old Redis: confirmed, they are told no longer. Not unasked: until
    then they can be put back."""
    lost = "INSERT INTO model (id, context_tokens, max_output_tokens, default_output_tokens) VALUES"
    async with system.engine.begin() as db:
        await db.execute(text(f"{lost} ('m', 9, 9, 9)"))
        await db.execute(
            text(
                "INSERT INTO price_entry (model, provider, currency, input_pico, output_pico,"
                " effective_from) VALUES ('m', 'self', 'USD', 1, 1,"
                " date_trunc('hour', now()) + interval '2 h')"
            )
        )
    await RestoreWatch(system.redis, system.engine, Everyone(), kept_ms=3_600_000).turn()
    async with system.engine.begin() as db:
        await db.execute(text("SET LOCAL session_replication_role = replica"))
        await db.execute(text("DELETE FROM price_entry"))
    stores = {"database_url": database_url, "redis_url": redis_url}
    assert weir("confirm", **stores) == (2, "weir: no changes are known to be lost\n")
    assert "lost of price_entry: 1" in weir("check", **stores)[1]
    status, said = weir("confirm", "--forget-prices", "--json", **stores)
    assert (status, json.loads(said)) == (0, {"forgotten_prices": {"price_entry": [1]}})
    assert weir("check", **stores) == (0, "Postgres holds all that is known of it\n")
