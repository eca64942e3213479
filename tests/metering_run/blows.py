"""What a script does to the system: each blow at its time, and all made good again."""

import asyncio
import json
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import aiohttp
from metering_run.accounts import Disturbance
from metering_run.arena import Arena, now_ms
from metering_run.processes import Process
from metering_run.script import Blow
from pausable_proxy import PausableProxy
from postgres_proxy import PostgresProxy

PROCESS_BLOWS = frozenset({"kill", "stop", "ship", "pause", "leave"})
"""One at a time a process, which is back before the next."""
FAULT_MS = 15_000
"""A fault on command waits for the request that it meets; for how long is not known exactly."""


@dataclass
class Blows:
    """Strikes, and remembers what it did."""

    arena: Arena
    done: list[Disturbance] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """Gateways that are not started again."""
    shipped: list[int] = field(default_factory=list)
    """How `weir journal ship` ended where it was to be killed."""

    async def run(self, blows: Sequence[Blow], began_s: float) -> None:
        """Every blow, until the last is made good."""
        async with asyncio.TaskGroup() as tasks:
            for blow in blows:
                tasks.create_task(self._strike(blow, began_s))

    async def _strike(self, blow: Blow, began_s: float) -> None:
        await asyncio.sleep(max(0.0, began_s + blow.at_s - asyncio.get_running_loop().time()))
        process = self.arena.processes.get(blow.target)
        async with AsyncExitStack() as turn:
            if process is not None and blow.kind in PROCESS_BLOWS:
                await turn.enter_async_context(process.turn)
            from_ms = now_ms()
            if process is not None and blow.kind in PROCESS_BLOWS:
                await self._hit(blow, process)
            else:
                await self._disturb(blow)
            lasts_ms = FAULT_MS if blow.kind == "fault" else 0
            self.done.append(Disturbance(blow.kind, blow.target, from_ms, now_ms() + lasts_ms))

    async def _hit(self, blow: Blow, process: Process) -> None:
        match blow.kind:
            case "kill":
                process.kill()
                await asyncio.sleep(blow.for_s)
                await process.come_back()
            case "stop":
                await process.stop()
                await process.come_back()
            case "ship":
                process.kill()
                await self._ship(blow)
                await process.come_back()
            case "pause":
                process.send(signal.SIGSTOP)
                await asyncio.sleep(blow.for_s)
                process.send(signal.SIGCONT)
            case "leave":
                process.kill()
                self.left.append(blow.target)

    async def _disturb(self, blow: Blow) -> None:
        match blow.kind:
            case "cut":
                await self._cut(blow)
            case "disk":
                self._disk(blow.how["fault"])
                await asyncio.sleep(blow.for_s)
                self._disk("")
            case "fault":
                await self._fault(blow)

    async def _ship(self, blow: Blow) -> None:
        status, _ = await self.arena.command(
            *("journal", "ship", str(self.arena.journal(blow.target))),
            kill_after_s=blow.how["killed_after_s"],
        )
        self.shipped.append(status)

    async def _cut(self, blow: Blow) -> None:
        for way in self.arena.ways[blow.target]:
            if not blow.how["hangs"]:
                await way.refuse()
            elif isinstance(way, PausableProxy):
                way.hang()
            else:
                way.freeze()
        await asyncio.sleep(blow.for_s)
        for way in self.arena.ways[blow.target]:
            await heal(way)

    def _disk(self, faults: str) -> None:
        draft = self.arena.control.with_suffix(".draft")
        draft.write_text(faults)
        draft.rename(self.arena.control)

    async def _fault(self, blow: Blow) -> None:
        """Of a worker that is down there is nothing to break."""
        url = self.arena.worker_urls[int(blow.target.rpartition("-")[2])]
        try:
            async with aiohttp.ClientSession() as session:
                await session.post(url + "/weir/faults", data=json.dumps(dict(blow.how)))
        except aiohttp.ClientError:
            return


async def heal(way: PausableProxy | PostgresProxy) -> None:
    """It passes everything again."""
    if isinstance(way, PausableProxy):
        await way.heal()
    else:
        await way.start()
