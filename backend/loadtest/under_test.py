"""What is under test: a URL, a whole Weir, or simulated replicas in this process."""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol

import aiohttp
import msgspec

from backend.loadtest.chat_body import chat_bodies
from backend.loadtest.http_connection import Address, Connections
from backend.loadtest.http_target import HttpTarget
from backend.loadtest.load_samples import read_sample
from backend.loadtest.plan import PlannedRequest, Workload
from backend.loadtest.progress import Counts
from backend.loadtest.prompts import PromptText
from backend.loadtest.rows import RowsCheck, check_rows
from backend.loadtest.run import Run, TargetFacts
from backend.loadtest.virtual_target import run_virtual
from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import Profile

IDLE_WITHIN_S = 60.0
POLL_S = 0.1
ASK_TIMEOUT_S = 5.0
Show = Callable[[Counts], None]


class UnderTest(Protocol):
    """Something that workloads can be run on, one after the other."""

    @property
    def simulated(self) -> bool | None:
        """Whether its figures are; None where nobody says."""

    async def run(self, workload: Workload, salt: str, show: Show) -> Run:
        """Run it whole. No prompt begins as one of a run of another salt does."""

    async def settle(self) -> bool:
        """Wait until nothing of the last run is left. False where something still is."""

    async def rows(self, run: Run) -> RowsCheck | None:
        """Compare the books with a run; None where there are none. Raises RowsUnreadable."""


class VirtualReplicasUnderTest:
    """Replicas on a virtual clock, new ones for each run."""

    def __init__(
        self, profile: Profile, flags: SchedulerFlags, replicas: int, timeout_s: float
    ) -> None:
        self._profile = profile
        self._flags = flags
        self._replicas = replicas
        self._timeout_ms = timeout_s * 1000

    @property
    def simulated(self) -> bool:
        """They are."""
        return True

    async def run(self, workload: Workload, salt: str, show: Show) -> Run:
        """See UnderTest. A Ctrl-C cancels, as it does elsewhere; of this run nothing is left."""
        # A Ctrl-C that came before this is a cancel already: it is heard at an await only.
        await asyncio.sleep(0)
        with _interrupt_cancels():
            return run_virtual(
                workload,
                self._profile,
                self._flags,
                self._replicas,
                timeout_ms=self._timeout_ms,
            )

    async def settle(self) -> bool:
        """They are gone."""
        return True

    async def rows(self, run: Run) -> None:
        """There are no books."""


class ServiceUnderTest:
    """An OpenAI-compatible service, and perhaps the workers behind it and its books.

    Args:
        url: its URL, or the first of several.
        workers: URLs by worker id, as far as they are known.
        database_url: where its usage records are; None where there are none.
        connections: to where requests go; see HttpTarget.
        prepare: what a workload needs there before it runs.
    """

    def __init__(
        self,
        url: str,
        facts: TargetFacts,
        *,
        model: str,
        api_key_of: Callable[[PlannedRequest], str | None],
        min_tokens: bool,
        timeout_s: float,
        workers: Mapping[str, str],
        database_url: str | None = None,
        connections: Callable[[Address], Connections] = Connections,
        prepare: Callable[[Workload], Awaitable[None]] | None = None,
    ) -> None:
        self._url = url
        self._facts = facts
        self._model = model
        self._api_key_of = api_key_of
        self._min_tokens = min_tokens
        self._timeout_s = timeout_s
        self._workers = workers
        self._database_url = database_url
        self._connections = connections
        self._prepare = prepare

    @property
    def simulated(self) -> bool | None:
        """As it says."""
        return self._facts.simulated

    async def run(self, workload: Workload, salt: str, show: Show) -> Run:
        """See UnderTest. A cancel ends it early: the run says when."""
        if self._prepare is not None:
            await self._prepare(workload)
        target = HttpTarget(
            self._url,
            self._facts,
            body_of=chat_bodies(
                self._model, PromptText(salt).messages, min_tokens=self._min_tokens, flex=False
            ),
            api_key_of=self._api_key_of,
            request_timeout_s=self._timeout_s,
            workers=self._workers,
            connections=self._connections,
        )
        began = datetime.now(UTC)
        run = await target.run(workload, show)
        run.ran_between = (began, datetime.now(UTC))
        return run

    async def settle(self) -> bool:
        """Wait, at most a minute, until the known workers have nothing to do."""
        timeout = aiohttp.ClientTimeout(total=ASK_TIMEOUT_S)
        try:
            async with (
                asyncio.timeout(IDLE_WITHIN_S),
                aiohttp.ClientSession(timeout=timeout) as session,
            ):
                for url in self._workers.values():
                    while await _busy(session, url):  # noqa: ASYNC110 - a server's load, asked
                        await asyncio.sleep(POLL_S)
        except TimeoutError:
            return False
        return True

    async def rows(self, run: Run) -> RowsCheck | None:
        """See UnderTest."""
        if self._database_url is None:
            return None
        return await check_rows(self._database_url, run.outcomes, between=run.ran_between)


async def _busy(session: aiohttp.ClientSession, url: str) -> bool:
    """What does not say is not waited for."""
    try:
        async with session.get(f"{url.rstrip('/')}/v1/loads") as answer:
            sample = read_sample("", 0.0, await answer.read())
    except (aiohttp.ClientError, msgspec.DecodeError):
        return False
    return sample.running + sample.waiting > 0


@contextmanager
def _interrupt_cancels() -> Iterator[None]:
    """Computing that never yields to the event loop hears no cancel: let Ctrl-C break into it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise asyncio.CancelledError from None
    finally:
        signal.signal(signal.SIGINT, before)
