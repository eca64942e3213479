"""What Redis remembers of Postgres: a restored one is noticed, and what it lacks is expected."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from reaping import Everyone, Graves, graves, journal_of
from shipping import DRAIN_MS, query, serve
from sqlalchemy import text

from billing.postgres.journals_behind import load_behind
from billing.postgres.reconcile_journals import load_journals
from gateway.adapters.journal.segment import list_segments
from gateway.adapters.postgres_past import PostgresPast, RestoreWatch
from gateway.administration import Administration
from gateway.domain.postgres_past import Boot, Restored

KEPT_MS = 3_600_000
SEEN = "SELECT gateway_id, boot, durable_seq, shipped_seq, closed_at IS NULL FROM gateway_seen"
PAST = (
    "ALTER TABLE audit_log DISABLE TRIGGER USER",
    "DELETE FROM audit_log WHERE id > 1",
    "ALTER TABLE audit_log ENABLE TRIGGER USER",
    "SELECT setval('audit_log_id_seq', 1)",
)
ACTOR = "cli:test"


@pytest.fixture
async def system(database_url: str, redis_url: str) -> AsyncIterator[Graves]:
    """Empty stores of this test's own."""
    async with graves(database_url, redis_url) as made:
        yield made


def watch(system: Graves, *, kept_ms: int = KEPT_MS) -> RestoreWatch:
    """One that has every turn."""
    return RestoreWatch(system.redis, system.engine, Everyone(), kept_ms=kept_ms)


async def change(system: Graves, *statements: str) -> None:
    """Change Postgres behind everybody's back."""
    async with system.engine.begin() as db:
        for statement in statements:
            await db.execute(text(statement))


async def test_what_postgres_had_of_a_gateway_that_is_gone_is_expected(
    system: Graves, tmp_path: Path
) -> None:
    """It left in order and nobody knows its name any more; after the restore usage waits for its
    journal, until that is shipped. Two who look note it once."""
    async with journal_of(system, tmp_path) as (journal, shipper):
        await serve(journal, 5)
        assert await shipper.drain(DRAIN_MS)
        boot, gateway_id = journal.boot, journal.gateway_id
    await watch(system).turn()
    assert (await PostgresPast(system.redis).read()).shipped == {Boot(gateway_id, boot): 10}
    await change(
        system,
        "DELETE FROM journal_watermark",
        "DELETE FROM usage_attempt",
        "DELETE FROM usage_record",
    )
    for _ in range(2):
        await watch(system).turn()
        assert await query(system.engine, SEEN) == [(gateway_id, boot, 10, 0, True)]
    async with system.engine.connect() as db:
        assert [each.gateway_id for each in await load_behind(db)] == [gateway_id]
    assert (await PostgresPast(system.redis).read()).shipped == {Boot(gateway_id, boot): 10}
    async with journal_of(system, tmp_path) as (_, shipper):
        assert await shipper.drain(DRAIN_MS)
    async with system.engine.connect() as db:
        assert not await load_behind(db)


async def test_one_that_nobody_waits_for_any_more_is_not_expected_again(
    system: Graves, tmp_path: Path
) -> None:
    """It was waited for and given up: that it lacks something is not news each turn."""
    async with journal_of(system, tmp_path) as (journal, shipper):
        await serve(journal, 1)
        assert await shipper.drain(DRAIN_MS)
    await watch(system).turn()
    await change(system, "DELETE FROM journal_watermark")
    await watch(system).turn()
    await change(system, "UPDATE gateway_seen SET closed_at = now()")
    await watch(system).turn()
    assert [row[-1] for row in await query(system.engine, SEEN)] == [False]


async def test_what_is_older_than_any_journal_is_forgotten(system: Graves, tmp_path: Path) -> None:
    """Redis does not grow with each gateway that ever was."""
    async with journal_of(system, tmp_path) as (journal, shipper):
        await serve(journal, 1)
        assert await shipper.drain(DRAIN_MS)
    await watch(system).turn()
    await change(system, "DELETE FROM journal_watermark")
    await watch(system, kept_ms=0).turn()
    assert not (await PostgresPast(system.redis).read()).shipped


async def test_lost_changes_are_said_until_somebody_confirms_them(system: Graves) -> None:
    """Also where so many were made since that the log is longer than it was."""
    administration = Administration(system.engine)
    for number in range(3):
        await administration.create_tenant(ACTOR, f"t{number}", "T")
    first, second = watch(system), watch(system)
    await first.turn()
    assert first.restored is None
    await change(system, *PAST)
    for number in range(5):
        await administration.create_tenant(ACTOR, f"u{number}", "T")
    await first.turn()
    await second.turn()
    assert first.restored == second.restored
    assert first.restored is not None
    assert first.restored[1:] == (6, 3)
    past = PostgresPast(system.redis)
    await administration.confirm_restore(ACTOR, {"audit_had": 3})
    await past.confirm()
    for _ in range(2):
        await first.turn()
        assert first.restored is None
    (entry,) = await query(
        system.engine, "SELECT action, after FROM audit_log ORDER BY id DESC LIMIT 1"
    )
    assert entry == ("restore.confirm", {"audit_had": 3})


async def test_a_second_restore_before_the_first_is_confirmed(system: Graves) -> None:
    """The one word stands for both: from the lower of the two on."""
    administration = Administration(system.engine)
    for number in range(3):
        await administration.create_tenant(ACTOR, f"t{number}", "T")
    looking = watch(system)
    await looking.turn()
    await change(system, *PAST)
    await looking.turn()
    await administration.create_tenant(ACTOR, "u", "T")
    await looking.turn()
    await change(system, *PAST)
    await looking.turn()
    assert isinstance(looking.restored, Restored)
    assert looking.restored[1:] == (1, 3)


async def test_a_boot_whose_files_are_gone_is_named(system: Graves, tmp_path: Path) -> None:
    """The retention was too short for this backup: later boots ship again, and of that one it is
    known how many numbers nobody has any more (REC-1)."""
    boots = []
    for _ in range(2):
        async with journal_of(system, tmp_path) as (journal, shipper):
            await serve(journal, 5)
            assert await shipper.drain(DRAIN_MS)
            boots.append(journal.boot)
    await watch(system).turn()
    for key in list_segments(tmp_path):
        if key.boot == boots[0]:
            key.path(tmp_path).unlink()
    await change(
        system,
        "DELETE FROM journal_watermark",
        "DELETE FROM usage_attempt",
        "DELETE FROM usage_record",
    )
    await watch(system).turn()
    async with journal_of(system, tmp_path) as (_, shipper):
        assert await shipper.drain(DRAIN_MS)
    await watch(system).turn()
    memory = await PostgresPast(system.redis).read()
    assert memory.shipped[Boot(journal.gateway_id, boots[0])] == 10
    async with system.engine.connect() as db:
        (stored,) = await load_journals(db, count_rows=True)
    lost = {boot.boot: (boot.durable_seq or 0) - (boot.seq or 0) for boot in stored.boots}
    assert lost[boots[0]] == 10
    assert lost[boots[1]] == 0
