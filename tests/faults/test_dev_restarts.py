"""`weir dev` while its parts are killed: each is back at its address, and nothing is orphaned."""

import shutil
import time
from pathlib import Path

import pytest
import servers
from dev_launcher import DevRun, all_gone, kill, status_of, weir_dev

from gateway.dev_ready import Ready
from gateway.domain.tenant import RequestClass

pytestmark = pytest.mark.fault
SIMULATED = ("--engine", "simulated")


def replaced(run: DevRun, part: str, old: int) -> Ready:
    """ready.json once it names another process for `part`, all else unchanged."""

    def now() -> int:
        value = getattr(run.ready().pids, part)
        return int(value[0] if isinstance(value, list) else value)

    run.until(lambda: now() != old, f"another {part}")
    return run.ready()


async def serves(run: DevRun, key: str) -> bool:
    """Whether the gateway is ready and knows the key."""
    return (
        await status_of(f"{run.url}/readyz") == 200
        and await status_of(f"{run.url}/v1/models", key) == 200
    )


async def test_each_part_comes_back_at_its_address(tmp_path: Path) -> None:
    """Stores and gateways at once, a worker after ten seconds; ready.json follows."""
    with weir_dev(tmp_path / "data", *SIMULATED) as run:
        before = run.ready()
        key = before.tenants["acme"][RequestClass.INTERACTIVE]
        took: dict[str, float] = {}
        for part, old in (
            ("redis", before.pids.redis),
            ("postgres", before.pids.postgres),
            ("gateways", before.pids.gateways[0]),
            ("workers", before.pids.workers[0]),
        ):
            assert old is not None
            since = time.monotonic()
            kill(old)
            after = replaced(run, part, old)
            took[part] = time.monotonic() - since
            assert (after.gateways, after.redis_url, after.database_url, after.workers) == (
                before.gateways,
                before.redis_url,
                before.database_url,
                before.workers,
            )
            deadline = time.monotonic() + 30
            while not await serves(run, key):
                assert time.monotonic() < deadline, f"no service after the loss of {part}"
        print({part: round(seconds, 2) for part, seconds in took.items()})  # noqa: T201 - measured
        assert 10 <= took["workers"] < 30
        assert max(took["redis"], took["postgres"], took["gateways"]) < 10
        assert run.stop() == 0
        assert all_gone(run_pids(after))


async def test_everything_killed_at_once_comes_back(tmp_path: Path) -> None:
    """Stores and gateway together: the gateway is tried until its stores are there again."""
    with weir_dev(tmp_path / "data", *SIMULATED) as run:
        before = run.ready()
        assert before.pids.redis is not None
        assert before.pids.postgres is not None
        for pid in (before.pids.redis, before.pids.postgres, *before.pids.gateways):
            kill(pid)
        replaced(run, "gateways", before.pids.gateways[0])
        assert await serves(run, before.tenants["acme"][RequestClass.INTERACTIVE])


async def test_a_killed_launcher_leaves_no_orphan_and_can_start_again_at_once(
    tmp_path: Path,
) -> None:
    """The same keys work on the same port; ready.json is not the dead one's."""
    with weir_dev(tmp_path / "data", *SIMULATED) as first:
        before = first.ready()
        pids = first.pids()
        kill(first.process.pid)
        first.process.wait()
        with weir_dev(tmp_path / "data", *SIMULATED, port=first.port) as second:
            second.until(lambda: "Weir serves" in second.output, "the welcome")
            assert all_gone(pids)
            after = second.ready()
            assert not set(pids) & set(second.pids())
            assert after.tenants == before.tenants
            assert await serves(second, after.tenants["acme"][RequestClass.INTERACTIVE])


async def test_a_killed_launchers_children_end_by_themselves(tmp_path: Path) -> None:
    """Without any later start there is still no orphan."""
    with weir_dev(tmp_path / "data", *SIMULATED) as run:
        pids, database_url = run.pids(), run.ready().database_url
        kill(run.process.pid)
        await servers.eventually(lambda: all_gone(pids))
    shutil.rmtree(database_url.partition("host=")[2])


def test_ctrl_c_twice_orphans_nothing(tmp_path: Path) -> None:
    """The second only hurries; the data are whole at the next start."""
    with weir_dev(tmp_path / "data", *SIMULATED) as run:
        pids = run.pids()
        run.interrupt()
        run.until(lambda: "stopping" in run.output or run.process.poll() is not None, "the stop")
        run.interrupt()
        assert run.process.wait(30) == 0
        assert all_gone(pids)


def run_pids(ready: Ready) -> list[int]:
    """Every process that a ready.json names."""
    pids = ready.pids
    return [*pids.gateways, *pids.workers, *(p for p in (pids.redis, pids.postgres) if p)]
