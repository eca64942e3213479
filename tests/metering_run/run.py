"""A run of metering from its seed to its verdict."""

import asyncio
import re
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import asyncpg
from metering_run.accounts import Accounts, Finding, Verdict
from metering_run.arena import Arena, arena
from metering_run.blows import Blows
from metering_run.clients import Clients
from metering_run.judge import judge
from metering_run.script import Script
from metering_run.witness import accounts_of

REST_S, REST_POLL_S = 120.0, 0.5
EXACT_SHARE_MIN = 0.5
WATCH_S = 2.0
PROVISIONAL = "SELECT count(*) FROM usage_record WHERE NOT final"
_UNSHIPPED = re.compile(r"^weir_unshipped_records(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@dataclass
class Outcome:
    """What came of it."""

    script: Script
    accounts: Accounts
    verdict: Verdict
    clients: Clients
    blows: Blows
    statuses: dict[str, list[int]]
    """How gateways ended that were told to."""
    reconciled: tuple[int, str]
    """`weir reconcile`: its status and what it said."""
    provisional: int
    """The most rows that were provisional at once: of gateways that were taken for dead."""
    took_s: dict[str, float]
    waited: Counter[str]
    """For what in the end, and how many half seconds."""

    @property
    def findings(self) -> list[Finding]:
        """All that must not be; nothing where every promise held."""
        return [*self.verdict.findings, *self._ends(), *self._too_weak()]

    def _ends(self) -> list[Finding]:
        found = [
            Finding("status", name, f"ended with {status} when told to")
            for name, statuses in self.statuses.items()
            for status in statuses
            if status
        ]
        status, said = self.reconciled
        if status:
            found.append(Finding("reconcile", f"status {status}", said))
        return found

    def _too_weak(self) -> list[Finding]:
        """A run in which nothing went wrong proves nothing."""
        found = []
        size = self.script.size
        rows, asked = len(self.accounts.rows), len(self.script.shots)
        if self.clients.answered != asked:
            found.append(Finding("weak", "clients", f"{self.clients.answered} of {asked} asked"))
        if rows < size.admitted_share_min * asked:
            found.append(Finding("weak", "rows", f"{rows} of {asked} requests were admitted"))
        if self.verdict.exact < EXACT_SHARE_MIN * rows:
            found.append(Finding("weak", "exact", f"{self.verdict.exact} of {rows} rows"))
        outcomes = Counter(row.outcome for row in self.accounts.rows)
        found += [
            Finding("weak", each, "no row says so") for each in size.outcomes if not outcomes[each]
        ]
        if len(self.blows.done) != len(self.script.blows):
            found.append(Finding("weak", "blows", f"{len(self.blows.done)} were done"))
        return found

    def report(self) -> str:
        """What was done and what came of it; the seed first."""
        rows = self.accounts.rows
        outcomes = Counter(f"{row.outcome} {row.source}" for row in rows)
        answers = Counter(
            f"{each.status or ''} {each.error}".strip() for each in self.clients.asked
        )
        done = Counter(f"{each.kind} {each.target}" for each in self.blows.done)
        terms = {n: (t.count, t.tokens) for n, t in sorted(self.verdict.terms.items())}
        output = sum(each.output for each in self.accounts.ran)
        counts = (
            f"{self.clients.answered} clients, {len(self.clients.asked)} requests,"
            f" late by {self.clients.latest_s:.1f} s;"
            f" {self.accounts.admitted.total()} admitted, {len(rows)} rows,"
            f" {self.verdict.exact} of them exact; {len(self.accounts.ran)} sequences ran,"
            f" {output} output tokens, {sum(row.output for row in rows)} recorded"
        )
        return "\n".join(
            [
                f"WEIR_METERING_SEED={self.script.seed}",
                counts,
                f"at most {self.provisional} rows were provisional at once",
                f"rows: {dict(sorted(outcomes.items()))}",
                f"differences (count, output tokens): {terms}",
                f"answers: {dict(answers.most_common())}",
                f"done: {dict(sorted(done.items()))}; ships ended {self.blows.shipped}",
                f"seconds: { {name: round(s, 1) for name, s in self.took_s.items()} }",
                f"half seconds waited for: {dict(self.waited)}",
                self.reconciled[1].rstrip(),
            ]
        )


async def run(script: Script, folder: Path) -> Outcome:
    """Play it against a system of its own, and gather what the witnesses say."""
    took: dict[str, float] = {}
    clock = _Clock(took)
    size = script.size
    async with arena(folder, gateways=size.gateways, workers=size.workers) as made:
        clock.lap("start")
        since = datetime.now(UTC)
        clients, blows = Clients(made.gateway_urls, made.secrets), Blows(made)
        began_s = asyncio.get_running_loop().time()
        watch = _Watch(made)
        watching = asyncio.create_task(watch.run())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(clients.run(script.shots, began_s))
            tasks.create_task(blows.run(script.blows, began_s))
        clock.lap("play")
        waited: Counter[str] = Counter()
        statuses = {"journal ship": await _rest(made, blows, size.sampled_s, waited)}
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        clock.lap("rest")
        reconciled = await _reconcile(made, since)
        clock.lap("reconcile")
        for process in made.gateways:
            if process.runs:
                await process.stop()
            statuses[process.name] = process.statuses
        clock.lap("stop")
        accounts = await accounts_of(made, clients.asked, blows.done)
        verdict = judge(accounts)
        clock.lap("judge")
    return Outcome(
        script, accounts, verdict, clients, blows, statuses, reconciled, watch.most, took, waited
    )


@dataclass
class _Watch:
    """What lies in a table of Postgres, looked at whenever Postgres is there."""

    made: Arena
    most: int = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(WATCH_S)
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                connection = await asyncpg.connect(self.made.database_url, timeout=WATCH_S)
                try:
                    count = await connection.fetchval(PROVISIONAL, timeout=WATCH_S)
                    self.most = max(self.most, count)
                finally:
                    await connection.close(timeout=WATCH_S)


class _Clock:
    def __init__(self, took: dict[str, float]) -> None:
        self._took, self._since = took, time.monotonic()

    def lap(self, name: str) -> None:
        """What lay behind the last one took so long."""
        now = time.monotonic()
        self._took[name] = now - self._since
        self._since = now


async def _rest(made: Arena, blows: Blows, sampled_s: float, waited: Counter[str]) -> list[int]:
    """A gateway that does not come back is brought home by hand; then wait until nothing is
    degraded or unshipped anywhere, and the engines' counters were read once more. Returns how the
    bringing home ended; `waited` is for what, and how many half seconds."""
    statuses = []
    for name in blows.left:
        status, _ = await made.command("journal", "ship", str(made.journal(name)))
        statuses.append(status)
    deadline = time.monotonic() + REST_S
    async with aiohttp.ClientSession() as session:
        while left := await _left(session, made):
            assert time.monotonic() < deadline, f"does not come to rest: {left}, before: {waited}"
            await asyncio.sleep(REST_POLL_S)
            waited.update(left)
    await asyncio.sleep(sampled_s)
    return statuses


async def _left(session: aiohttp.ClientSession, made: Arena) -> list[str]:
    """What is not at rest."""
    found = []
    for process, url in zip(made.gateways, made.gateway_urls, strict=True):
        if not process.runs:
            continue
        try:
            async with session.get(url + "/readyz") as answer:
                words = (await answer.json(content_type=None))["degraded"]
            async with session.get(url + "/metrics") as answer:
                unshipped = _UNSHIPPED.search(await answer.text())
        except (aiohttp.ClientError, OSError) as error:
            found.append(f"{process.name} {type(error).__name__}")
            continue
        assert unshipped is not None
        found += [f"{process.name} {word}" for word in words]
        if float(unshipped[1]):
            found.append(f"{process.name} ships")
    return found


async def _reconcile(made: Arena, since: datetime) -> tuple[int, str]:
    journals = [str(made.journal(process.name)) for process in made.gateways]
    return await made.command(
        "reconcile",
        *("--from", since.isoformat()),
        *(part for each in journals for part in ("--journal", each)),
        *(part for each in made.worker_urls for part in ("--ledger", each)),
    )
