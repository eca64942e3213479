"""`weir reconcile` on a whole system, as a person runs it."""

import asyncio
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import msgspec
from weir_dev import Json, WeirDev

WITHIN_S = 30.0


async def reconcile(system: WeirDev, *arguments: str, ledgers: bool = True) -> Json:
    """What `--json` says of the last half hour, with every journal and, where the workers keep
    any, every ledger. Its exit status must say the same."""
    since = (datetime.now(UTC) - timedelta(minutes=30)).isoformat()
    command = [sys.executable, "-m", "gateway", "reconcile", "--json", "--from", since]
    command += ["--data-dir", str(system.data_dir), "--journal", str(system.data_dir / "journal")]
    if ledgers:
        for worker in system.ready["workers"]:
            command += ["--ledger", worker["url"]]
    done = await asyncio.to_thread(
        subprocess.run, [*command, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    view: Json = msgspec.json.decode(done.stdout)
    assert done.returncode == (0 if view["ok"] else 1)
    return view


def findings(view: Json) -> dict[str, list[Json]]:
    """Of each check that has any."""
    return {each["check"]: each["findings"] for each in view["checks"] if each["findings"]}


def terms(view: Json, check: str) -> dict[str, int]:
    """A check's terms."""
    (found,) = [each for each in view["checks"] if each["check"] == check]
    sizes: dict[str, int] = found["terms"]
    return sizes


async def at_rest(system: WeirDev) -> None:
    """Nothing runs, and all that was recorded is in Postgres and rolled up."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        (books,) = await system.sql(
            "SELECT coalesce(sum(admitted_count - ended_count), 0) AS open,"
            " (SELECT count(*) FROM usage_rollup_dirty) AS marks FROM journal_watermark"
        )
        if not system.running() and (books["open"], books["marks"]) == (0, 0):
            return
        assert time.monotonic() < deadline, books
        await asyncio.sleep(0.2)
