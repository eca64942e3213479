"""Postgres is lost, and restored from a backup that is older than half of the rows. The journals
have the rest."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from metering_run.arena import Arena, arena
from restoring import (
    ask,
    attempts,
    back_up,
    back_up_whole,
    begin,
    lose_postgres,
    put_back,
    put_back_whole,
    rows,
    said,
    until,
    until_words,
)

Way = Callable[[Arena, Path], Awaitable[None]]
pytestmark = pytest.mark.fault
COUNT = "SELECT count(*)::int FROM usage_record"
PROVISIONAL = "SELECT count(*)::int FROM usage_record WHERE NOT final"
ROLLED = "SELECT coalesce(sum(requests), 0)::int FROM usage_rollup"
MARKS = "SELECT count(*)::int FROM usage_rollup_dirty"
EACH, AFTER, RUNNING = 40, 240, 5


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("save", "load"), [(back_up, put_back), (back_up_whole, put_back_whole)], ids=["dump", "whole"]
)
async def test_yesterdays_backup_and_the_journals_give_every_row(
    tmp_path: Path, save: Way, load: Way
) -> None:
    """INV-5: a gateway that runs on and has nothing to do, one that was killed and whose
    requests others recorded, and one that was scaled away give back what the backup lacks: each row
    once, as it was. Until then usage is not complete, and it is said of whom it is not."""
    since = datetime.now(UTC)
    async with arena(tmp_path, gateways=3, workers=1) as made:
        for gateway in range(3):
            await ask(made, gateway, EACH)
        await until(made, COUNT, 3 * EACH)
        await save(made, tmp_path / "yesterday")
        for gateway in range(3):
            await ask(made, gateway, AFTER)
        await begin(made, 1, RUNNING)
        made.processes["gateway-1"].kill()
        assert await made.processes["gateway-2"].stop() == 0
        await until(made, PROVISIONAL, RUNNING)
        before, tried = await rows(made), await attempts(made)
        assert len(before) == 3 * (EACH + AFTER) + RUNNING
        await lose_postgres(made)
        await load(made, tmp_path / "yesterday")

        await until(made, COUNT, 3 * EACH + AFTER)  # the one that runs, by itself
        await until_words(made, 0, {"usage"})
        status, lacks = await said(made, "restore", "check")
        assert (status, len(lacks["journals"]), lacks["changes"]) == (1, 2, None)
        status, usage = await said(made, "usage", "sum")
        assert (status, usage["complete"]) == (0, False)
        await made.processes["gateway-1"].start()
        away = tmp_path / "gateway-2" / "journal"
        status, shipped = await said(made, "journal", "ship", str(away))
        assert (status, shipped["shipped"], shipped["whole"]) == (0, AFTER, True)

        await until(made, COUNT, len(before))
        await until(made, PROVISIONAL, 0)
        await until(made, MARKS, 0)
        await until(made, ROLLED, len(before))
        after = await rows(made)
        assert after.keys() == before.keys()
        lost = {name for name, row in before.items() if not row["final"]}
        assert {name: after[name] for name in after if name not in lost} == {
            name: row for name, row in before.items() if name not in lost
        }
        assert {after[name]["outcome"] for name in lost} == {"gateway_lost"}
        assert all(after[name]["final"] for name in lost)
        assert await attempts(made) == tried
        for gateway in (0, 1):
            await until_words(made, gateway, set())
        assert (await said(made, "restore", "check"))[0] == 0
        journals = [str(made.journal(f"gateway-{number}")) for number in range(3)]
        proof = await made.command(
            *("reconcile", "--from", since.isoformat()),
            *(part for each in journals for part in ("--journal", each)),
        )
        assert proof[0] == 0, proof[1]
