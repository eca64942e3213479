"""The supervisor, on real processes: restarts, pauses, order of stopping."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from servers import eventually, process_state

from backend.embedded import Launch, StartFailed
from backend.supervisor import AFTER_TEN_SECONDS, AT_ONCE, Pauses, Rank, Service, Supervisor

AT_WORK = """
import signal, sys, time
def leave(number, frame):
    with open(sys.argv[2], "a") as order:
        order.write(sys.argv[1] + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
open(sys.argv[3], "w").close()
while True:
    time.sleep(60)
"""
DEAF = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[3], "w").close()
while True:
    time.sleep(60)
"""


class Workshop:
    """Makes services in a folder, under one supervisor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.changes = 0
        self.supervisor = Supervisor(say=self.lines.append, on_change=self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def service(self, name: str, rank: Rank, program: str = AT_WORK) -> Service:
        """A service that is ready once it has made a file, and notes when it stops."""
        ready_path = self.folder / f"{name}.ready"

        def launch() -> Launch:
            ready_path.unlink(missing_ok=True)
            arguments = (name, str(self.folder / "order"), str(ready_path))
            return Launch((sys.executable, "-c", program, *arguments), self.folder / f"{name}.log")

        async def is_ready() -> bool:
            return ready_path.exists()

        return Service(name, rank, launch, is_ready)

    def pid(self, name: str) -> int:
        """The process that serves."""
        found = self.supervisor.pid(name)
        assert found is not None
        return found


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    """A workshop whose processes are all gone after the test."""
    made = Workshop(tmp_path)
    yield made
    made.supervisor.hurry()
    await made.supervisor.stop()


async def test_what_dies_is_started_again_at_once_and_told(workshop: Workshop) -> None:
    """kill -9, and soon another process serves in its place."""
    await workshop.supervisor.start([workshop.service("gateway-0", Rank.GATEWAY)])
    first = workshop.pid("gateway-0")
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: workshop.changes == 1)
    assert workshop.pid("gateway-0") != first
    assert workshop.lines == [
        "gateway-0 ended with SIGKILL",
        f"gateway-0 serves again, process {workshop.pid('gateway-0')}",
    ]


async def test_the_others_are_left_alone(workshop: Workshop) -> None:
    """One death restarts one process."""
    services = [workshop.service(name, Rank.WORKER) for name in ("a", "b")]
    await workshop.supervisor.start(services)
    other = workshop.pid("b")
    os.kill(workshop.pid("a"), signal.SIGKILL)
    await eventually(lambda: workshop.changes == 1)
    assert workshop.pid("b") == other
    assert process_state(other) not in (None, "Z")


async def test_what_keeps_dying_is_tried_ever_more_seldom(workshop: Workshop) -> None:
    """It is never given up, nor does it take a core."""
    service = workshop.service("gateway-0", Rank.GATEWAY)
    flag = workshop.folder / "broken"
    broken = "import os, sys\nif os.path.exists('broken'): sys.exit('no luck')\n" + AT_WORK
    workshop_launch = workshop.service("gateway-0", Rank.GATEWAY, broken).launch
    attempts: list[float] = []

    def launch() -> Launch:
        attempts.append(asyncio.get_running_loop().time())
        return replace(workshop_launch(), folder=workshop.folder)

    pauses = Pauses(first_s=0.0, second_s=0.02, longest_s=0.08)
    await workshop.supervisor.start([replace(service, launch=launch, pauses=pauses)])
    flag.write_text("")
    os.kill(workshop.pid("gateway-0"), signal.SIGKILL)
    await eventually(lambda: len(attempts) >= 6)
    gaps = [later - earlier for earlier, later in pairwise(attempts[1:])]
    assert all(gap >= pause for gap, pause in zip(gaps, (0.02, 0.04, 0.08), strict=False))
    flag.unlink()
    await eventually(lambda: workshop.changes == 1)
    said = [line for line in workshop.lines if "no luck" in line]
    assert said[0] == (
        f"gateway-0 ended with status 1; no luck (log: {workshop.folder / 'gateway-0.log'})"
    )


@pytest.mark.parametrize(
    ("pauses", "expected"),
    [
        (AT_ONCE, [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]),
        (AFTER_TEN_SECONDS, [10, 10, 10, 10]),
    ],
)
def test_pauses_have_a_bound(pauses: Pauses, expected: list[float]) -> None:
    """Stores and gateways at once and, however often they die, within 5 s; workers after 10 s."""
    found = [pauses.after(failures) for failures in range(1, len(expected) + 1)]
    assert found == pytest.approx(expected)
    assert pauses.after(10_000) == expected[-1]


async def test_a_start_that_fails_is_one_line_and_leaves_nothing(workshop: Workshop) -> None:
    """The last line of the log is in it; what started beside it is stopped by `stop`."""
    good = workshop.service("good", Rank.GATEWAY)
    bad = workshop.service("bad", Rank.GATEWAY, "import sys; sys.exit('it is broken')")
    with pytest.raises(StartFailed) as failed:
        await workshop.supervisor.start([good, bad])
    log = workshop.folder / "bad.log"
    assert str(failed.value) == f"bad ended with status 1; it is broken (log: {log})"
    pid = workshop.pid("good")
    await workshop.supervisor.stop()
    assert process_state(pid) is None


async def test_a_start_that_takes_too_long_is_killed(workshop: Workshop) -> None:
    """A service that never serves does not hold everything up."""
    service = workshop.service("slow", Rank.GATEWAY, "import time; time.sleep(60)")
    impatient = replace(service, ready_timeout_s=0.05, stop_timeout_s=0.05)
    with pytest.raises(StartFailed, match="slow was not ready within 0 s"):
        await workshop.supervisor.start([impatient])
    assert workshop.supervisor.pid("slow") is None


async def test_gateways_stop_first_then_workers_then_stores(workshop: Workshop) -> None:
    """Each finds what it needs until it has ended itself."""
    for name, rank in (("store", Rank.STORE), ("worker", Rank.WORKER), ("gateway", Rank.GATEWAY)):
        await workshop.supervisor.start([workshop.service(name, rank)])
    pids = [workshop.pid(name) for name in ("store", "worker", "gateway")]
    await workshop.supervisor.stop()
    assert (workshop.folder / "order").read_text().split() == ["gateway", "worker", "store"]
    assert [process_state(pid) for pid in pids] == [None, None, None]
    assert workshop.lines == []


async def test_who_does_not_stop_is_killed_in_time(workshop: Workshop) -> None:
    """A hung process does not keep the rest from ending."""
    deaf = workshop.service("deaf", Rank.GATEWAY, DEAF)
    await workshop.supervisor.start(
        [replace(deaf, stop_timeout_s=0.05), workshop.service("store", Rank.STORE)]
    )
    pid = workshop.pid("deaf")
    await workshop.supervisor.stop()
    assert process_state(pid) is None
    assert workshop.lines == ["deaf did not end and is killed"]
    assert (workshop.folder / "order").read_text().split() == ["store"]


async def test_a_hurried_stop_waits_for_no_gateway_and_orphans_nobody(workshop: Workshop) -> None:
    """A second Ctrl-C: gateways and workers are killed, stores still end in order."""
    deaf = workshop.service("deaf", Rank.GATEWAY, DEAF)
    await workshop.supervisor.start([replace(deaf, stop_timeout_s=60)])
    await workshop.supervisor.start([workshop.service("store", Rank.STORE)])
    pids = workshop.pid("deaf"), workshop.pid("store")
    stopping = asyncio.create_task(workshop.supervisor.stop())
    await asyncio.sleep(0)
    workshop.supervisor.hurry()
    await asyncio.wait_for(stopping, 10)
    assert [process_state(pid) for pid in pids] == [None, None]
    assert (workshop.folder / "order").read_text().split() == ["store"]


async def test_a_stop_during_a_restart_leaves_nothing(workshop: Workshop) -> None:
    """Whatever the keeper is doing at that moment."""
    service = workshop.service("gateway-0", Rank.GATEWAY)
    await workshop.supervisor.start([service])
    os.kill(workshop.pid("gateway-0"), signal.SIGKILL)
    await eventually(lambda: workshop.lines)
    await asyncio.sleep(0.01)
    await workshop.supervisor.stop()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()  # noqa: ASYNC240 - a file of the kernel's
    running = [Path(f"/proc/{pid}/cmdline").read_text() for pid in children]  # noqa: ASYNC240 - as above
    assert not any("gateway-0" in arguments for arguments in running)
