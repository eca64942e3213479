"""Child processes kept alive: started in order, started again where they die, stopped in order.

Owns: when a service is started again, and the order of it all.
Does not own: what a service is, or how a child is made (`backend.embedded.child` does).

Everything happens on one event loop in the main thread, to which the kernel ties the children: if
that dies, so do they. Each child leads a session of its own, so Ctrl-C reaches the supervisor only.
"""

import asyncio
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum

from backend.embedded.binaries import BinaryMissing
from backend.embedded.child import Launch, StartFailed, Store, last_words, spawn
from backend.embedded.data_dir import DataDirUnusable
from backend.embedded.ports import NoFreePort

PROBE_PAUSE_S = 0.005
PROBE_PAUSE_S_MAX = 0.05
STEADY_S = 30.0
"""A service that served for so long has recovered: its pauses begin anew."""
KILL_WAIT_S = 5.0


class Rank(IntEnum):
    """Services are started by rising rank and stopped by falling rank."""

    STORE = 0
    WORKER = 1
    GATEWAY = 2


@dataclass(frozen=True)
class Pauses:
    """How long to wait before each start: `first_s`, `second_s`, then doubled up to `longest_s`."""

    first_s: float = 0.0
    second_s: float = 0.1
    longest_s: float = 5.0

    def after(self, failures: int) -> float:
        """The pause after that many deaths in a row, from 1."""
        if failures <= 1:
            return self.first_s
        return float(min(self.longest_s, self.second_s * 2 ** min(failures - 2, 32)))


AT_ONCE = Pauses()
AFTER_TEN_SECONDS = Pauses(first_s=10.0, second_s=10.0, longest_s=10.0)


@dataclass(frozen=True)
class Service:
    """A program to keep running. `launch` is asked before every start, also for the same address.

    `launch` raises StartFailed or OSError where it cannot be started now.
    """

    name: str
    rank: Rank
    launch: Callable[[], Launch]
    is_ready: Callable[[], Awaitable[bool]]
    stop_signal: signal.Signals = signal.SIGTERM
    pauses: Pauses = AT_ONCE
    ready_timeout_s: float = 60.0
    stop_timeout_s: float = 10.0


def store_service(store: Store) -> Service:
    """An embedded store as a service."""

    async def is_ready() -> bool:
        return store.is_ready()

    return Service(store.name, Rank.STORE, store.launch, is_ready, store.stop_signal)


@dataclass
class _Kept:
    """One service's present process."""

    service: Service
    child: subprocess.Popen[bytes] | None = None
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    ready: bool = False
    served_pid: int | None = None
    keeper: asyncio.Task[None] | None = None


class Supervisor:
    """Keeps services alive from `start` until `stop`. Use it from the main thread's event loop.

    `on_change` is called whenever a service has been started again; `say` gets one line for each
    event that a person would want to know of.
    """

    def __init__(
        self,
        *,
        say: Callable[[str], None] = lambda line: None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._say = say
        self._on_change = on_change
        self._kept: dict[str, _Kept] = {}
        self._hurry = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)

    async def start(self, services: Sequence[Service]) -> None:
        """Start services side by side; return once all of them serve.

        Raises StartFailed where one does not come up at all. From here on each is kept alive.
        """
        kept = [_Kept(service) for service in services]
        self._kept.update({one.service.name: one for one in kept})
        async with asyncio.TaskGroup() as starting:
            results = [starting.create_task(_failure_of(self._bring_up(one))) for one in kept]
        failed = next((task.result() for task in results if task.result() is not None), None)
        if failed is not None:
            raise failed
        for one in kept:
            one.keeper = asyncio.create_task(self._keep(one), name=f"keep {one.service.name}")

    def pid(self, name: str) -> int | None:
        """The id of the process that serves, or served last; None where there is no such service
        or it has never served."""
        one = self._kept.get(name)
        return None if one is None else one.served_pid

    def hurry(self) -> None:
        """Make a `stop`, present or later, wait for nobody: kill what may be killed safely."""
        self._hurry.set()

    async def stop(self) -> None:
        """Stop everything, the highest rank first; return when the last process has gone."""
        for rank in sorted(Rank, reverse=True):
            ranked = [one for one in self._kept.values() if one.service.rank is rank]
            await asyncio.gather(*(self._end(one) for one in ranked))
        asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)

    def _reap(self) -> None:
        for one in self._kept.values():
            if one.child is not None and one.child.poll() is not None:
                one.ready = False
                one.exited.set()

    async def _bring_up(self, one: _Kept) -> None:
        """Start a service and return once it serves. Raises StartFailed, leaving no process."""
        service = one.service
        try:
            launch = service.launch()
            one.exited = asyncio.Event()
            one.child = child = spawn(launch)
        except (OSError, BinaryMissing, DataDirUnusable, NoFreePort) as error:
            raise StartFailed(f"cannot start {service.name}: {error}") from error
        self._reap()
        try:
            async with asyncio.timeout(service.ready_timeout_s):
                await _until_ready(service, one.exited)
        except TimeoutError as error:
            await self._end_child(one)
            raise StartFailed(
                f"{service.name} was not ready within {service.ready_timeout_s:.0f} s; "
                + last_words(launch.log_path)
            ) from error
        if one.exited.is_set():
            raise StartFailed(
                f"{service.name} ended with {_ending(child)}; {last_words(launch.log_path)}"
            )
        one.ready = True
        one.served_pid = child.pid

    async def _keep(self, one: _Kept) -> None:
        """Start a service again whenever it ends, for ever."""
        service, failures = one.service, 0
        while True:
            since = time.monotonic()
            if one.ready:
                await one.exited.wait()
                assert one.child is not None  # noqa: S101 - it was ready
                self._say(f"{service.name} ended with {_ending(one.child)}")
            if time.monotonic() - since > STEADY_S:
                failures = 0
            failures += 1
            pause_s = service.pauses.after(failures)
            if pause_s >= 1:
                self._say(f"{service.name} starts again in {pause_s:.0f} s")
            await asyncio.sleep(pause_s)
            try:
                await self._bring_up(one)
            except StartFailed as error:
                self._say(str(error))
                continue
            self._say(f"{service.name} serves again, process {one.served_pid}")
            self._on_change()

    async def _end(self, one: _Kept) -> None:
        if one.keeper is not None:
            one.keeper.cancel()
            await asyncio.gather(one.keeper, return_exceptions=True)
        await self._end_child(one)

    async def _end_child(self, one: _Kept) -> None:
        """Ask the child to end, kill it if it does not in time, and reap it."""
        if one.child is None or one.child.poll() is not None:
            return
        one.ready = False
        one.child.send_signal(one.service.stop_signal)
        waits = [asyncio.create_task(one.exited.wait())]
        # A store is let finish: it is quick, and killed it would have to recover next time.
        if one.service.rank is not Rank.STORE:
            waits.append(asyncio.create_task(self._hurry.wait()))
        await asyncio.wait(
            waits, timeout=one.service.stop_timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        for wait in waits:
            wait.cancel()
        if one.child.poll() is None:
            self._say(f"{one.service.name} did not end and is killed")
            one.child.kill()
            with suppress(subprocess.TimeoutExpired):  # stuck in the kernel; it dies when it can
                one.child.wait(KILL_WAIT_S)


async def _until_ready(service: Service, exited: asyncio.Event) -> None:
    """Return once `service` serves or has ended."""
    pause_s = PROBE_PAUSE_S
    while not exited.is_set() and not await service.is_ready():
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.2, PROBE_PAUSE_S_MAX)


async def _failure_of(start: Awaitable[None]) -> StartFailed | None:
    """What became of a start, so that the others started beside it are not cut short."""
    try:
        await start
    except StartFailed as error:
        return error
    return None


def _ending(child: subprocess.Popen[bytes]) -> str:
    status = child.returncode
    if status is not None and status < 0:
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"
    return f"status {status}"
