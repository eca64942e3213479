"""What admission costs: the server's core a decision, pairs of acquire and settle through one
adapter, how the cost grows with tenants and leases, and the memory that each takes.

`PYTHONPATH=. python benchmarks/admission.py [--only server,pairs,growth] [--quick]` prints
tables. Every figure is the median of short interleaved rounds on an embedded Valkey; CPU time
first, as a busy machine changes it least, and least of all the quickest tenth of the rounds. GET
and a script that does nothing are measured beside, in the same rounds.
"""

import argparse
import asyncio
import gc
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import click
import uvloop
from redis.asyncio import BlockingConnectionPool, Redis

from backend.embedded import DataDir, EmbeddedValkey, running
from backend.loadtest.percentiles import nearest_rank
from gateway.adapters.ledger import RedisLedger
from gateway.adapters.redis import RedisClient, connect_redis
from gateway.domain.admission import Demand, Granted, Refused
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import HeldLease, LedgerUnavailable

TTL_MS = 3_600_000
TIMEOUT_MS = 5_000
ROUNDS = 50
"""Short ones: what another program disturbs is then told from what a call costs."""
TOGETHER = 64
"""Calls in flight where the server's own cost is measured: enough to keep it busy."""
PAIR_TENANTS = 100
WINDOW_S = 0.5
"""A machine that is shared stands still for a tenth of a second now and then: what waited is then
in few of so short windows, and in the p99 of all."""
MINUTE_TENANTS, MINUTE_LEASES = 100, 4
"""Of the windows that are full: how many tenants, and how many leases in each second of each."""
KEY, MODEL = "key_0123456789", "llama-3.3-70b-instruct"
NAMES = ("tenant", f"key:{KEY}", f"model:{MODEL}", f"key:{KEY}/model:{MODEL}")
WIDE = tuple(ScopeLimits(name, 1, 10**6, 10**9, 10**6) for name in NAMES)
SHUT = tuple(ScopeLimits(name, 1, 1, 10**9, 10**6) for name in NAMES)
SIZES = (10, 1_000, 100_000)


class Cost(NamedTuple):
    """Of one kind of call."""

    server_us: float
    """CPU time of the server's main thread, which decides."""
    command_us: float
    """Within the command, as `INFO commandstats` has it."""
    client_us: float
    """CPU time of this process."""
    calls_per_s: float


@dataclass
class Bench:
    """A server, and one adapter to it."""

    server_pid: int
    url: str
    redis: RedisClient
    ledger: RedisLedger

    def server_cpu_s(self) -> float:
        """User and system time of the server's main thread so far."""
        path = Path(f"/proc/{self.server_pid}/task/{self.server_pid}/schedstat")
        return int(path.read_text().split()[0]) / 1e9

    async def used_memory(self) -> int:
        """Bytes, as the server counts them."""
        return int((await self.redis.info())[0]["used_memory"])

    async def cost(self, call: Callable[[int], Awaitable[object]], count: int) -> Cost:
        """`count` calls, TOGETHER at once and then the next: this process is idle while the server
        works, so that the two do not share a core's caches and units."""
        before = await self._commands()
        server_s, client_s, began = self.server_cpu_s(), time.process_time(), time.perf_counter()
        for first in range(0, count, TOGETHER):
            last = min(first + TOGETHER, count)
            await asyncio.gather(*(call(number) for number in range(first, last)))
        took_s = time.perf_counter() - began
        client_s, server_s = time.process_time() - client_s, self.server_cpu_s() - server_s
        after = await self._commands()
        calls, usec = after[0] - before[0], after[1] - before[1]
        return Cost(
            server_s / count * 1e6, usec / max(1, calls), client_s / count * 1e6, count / took_s
        )

    async def _commands(self) -> tuple[int, int]:
        """Calls of EVALSHA so far, and microseconds spent in them."""
        line = (await self.redis.info(section="commandstats"))[0].get("cmdstat_evalsha", "")
        values = dict(part.split("=") for part in line.split(",") if part)
        return int(values.get("calls", 0)), int(values.get("usec", 0))

    async def acquire(self, tenant: str, ledger: RedisLedger | None = None) -> HeldLease:
        """A lease. Fails where it is refused."""
        request_id = uuid4().hex
        reply = await (ledger or self.ledger).acquire(
            tenant, KEY, MODEL, Demand(request_id, 1, 1400, 900), WIDE
        )
        assert isinstance(reply, Granted)  # noqa: S101 - else the figures mean something else
        return HeldLease(
            request_id=request_id,
            tenant_id=tenant,
            key_id=KEY,
            model=MODEL,
            sequences=1,
            reserved_tokens=reply.reserved_tokens,
            second=reply.second,
            scope_names=NAMES,
        )

    async def settle(self, lease: HeldLease) -> None:
        """Less than was reserved, as is usual."""
        await self.ledger.settle(lease, actual_tokens=1180, ran=True)

    async def pair(self, tenant: str) -> None:
        """One request's two calls."""
        await self.settle(await self.acquire(tenant))

    async def timed(self, pair: Callable[[str], Awaitable[None]], tenant: str, due: float) -> float:
        """Seconds since `due` at its end; endless where the store did not decide in time."""
        try:
            await pair(tenant)
        except LedgerUnavailable:
            return float("inf")
        return time.perf_counter() - due


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, str]]:
    """A fresh Valkey: its process and its URL."""
    data_dir = DataDir.open(folder)
    valkey = EmbeddedValkey(data_dir)
    try:
        with running(valkey) as process:
            yield process.pid, valkey.url
    finally:
        data_dir.close()


async def with_bench(
    work: Callable[[Bench], Awaitable[None]], *, timeout_ms: int = TIMEOUT_MS
) -> None:
    """Do it on a server of its own."""
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (pid, url):
        redis = connect_redis(url, timeout_ms=timeout_ms)
        try:
            ledger = RedisLedger(redis, ttl_ms=TTL_MS, timeout_ms=timeout_ms)
            await work(Bench(pid, url, redis, ledger))
        finally:
            await redis.aclose()


def show(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """One Markdown table."""
    click.echo(f"\n{title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for row in rows:
        click.echo(f"| {' | '.join(row)} |")


async def fill_minute(bench: Bench) -> tuple[RedisLedger, list[HeldLease]]:
    """Tenants whose windows have a cell for every second, on a clock that then stands."""
    now_ms = [int(time.time()) * 1000]
    ledger = RedisLedger(
        bench.redis, ttl_ms=TTL_MS, timeout_ms=TIMEOUT_MS, clock_ms=lambda: now_ms[0]
    )
    leases: list[HeldLease] = []
    for _ in range(60):
        for _ in range(MINUTE_LEASES):
            names = [f"m{n}" for n in range(MINUTE_TENANTS)]
            leases += await asyncio.gather(*(bench.acquire(name, ledger) for name in names))
        now_ms[0] += 1_000
    random.Random(4).shuffle(leases)  # noqa: S311 - the order of settlements
    return ledger, leases


async def measure_server(bench: Bench, count: int) -> None:
    """CPU of the server for each kind of call, 1,000 tenants with a lease each."""
    tenants = [f"t{n}" for n in range(1_000)]
    for tenant in tenants:
        await bench.acquire(tenant)
    full = await bench.acquire("full")
    minute, of_minute = await fill_minute(bench)
    nothing = bench.redis.register_script("return 1")
    pool = BlockingConnectionPool.from_url(bench.url, max_connections=TOGETHER)
    plain = Redis(connection_pool=pool)
    plain_nothing = plain.register_script("return 1")
    leases: list[HeldLease] = []

    async def acquire(number: int) -> None:
        leases.append(await bench.acquire(tenants[number % len(tenants)]))

    async def settle(_: int) -> None:
        await bench.settle(leases.pop())

    async def settle_minute(_: int) -> None:
        await minute.settle(of_minute.pop(), actual_tokens=1180, ran=True)

    async def refused(_: int) -> None:
        demand = Demand(uuid4().hex, 1, 1400, 900)
        reply = await bench.ledger.acquire("full", KEY, MODEL, demand, SHUT)
        assert isinstance(reply, Refused)  # noqa: S101 - as above

    async def renew(_: int) -> None:
        await bench.ledger.renew("full", [full])

    kinds: dict[str, Callable[[int], Awaitable[object]]] = {
        "a script that does nothing": lambda _: nothing(["k"], []),
        "the same by redis-py, a pool": lambda _: plain_nothing(["k"], []),
        "GET": lambda _: bench.redis.get("k"),
        "acquire, granted": acquire,
        "settle": settle,
        "acquire, a full minute's window": lambda n: bench.acquire(
            f"m{n % MINUTE_TENANTS}", minute
        ),
        "settle, a full minute's window": settle_minute,
        "acquire, refused": refused,
        "renew, one lease": renew,
        "observe": lambda n: bench.ledger.observe(tenants[n % len(tenants)], WIDE),
    }
    rounds: dict[str, list[Cost]] = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name, call in kinds.items():
            rounds[name].append(await bench.cost(call, count))
    await plain.aclose()
    await pool.aclose()
    rows = []
    for name, costs in rounds.items():
        costs.sort()
        middle = costs[len(costs) // 2]
        rows.append(
            (name, f"{costs[len(costs) // 10].server_us:.1f}",
             f"{middle.server_us:.1f}", f"{middle.command_us:.1f}",
             f"{1e6 / max(middle.server_us, 0.1):,.0f}", f"{middle.client_us:.1f}",
             f"{middle.calls_per_s:,.0f}")
        )  # fmt: skip
    show(
        "What a call costs",
        ("call", "server CPU µs, least disturbed tenth", "median", "of it in the command µs",
         "calls/s of the server's core",
         "adapter CPU µs", f"calls/s, {TOGETHER} at once"),
        rows,
    )  # fmt: skip


async def measure_pairs(bench: Bench, seconds: float) -> None:
    """Pairs through one adapter: as fast as they go, and at a rate that is offered. Beside each
    rate two scripts that do nothing, as the control: what the machine alone keeps waiting."""
    nothing = bench.redis.register_script("return 1")

    async def control(_: str) -> None:
        await nothing(["k"], [])
        await nothing(["k"], [])

    for number in range(PAIR_TENANTS):
        await bench.pair(f"t{number}")
    await control("")
    rows = []
    for callers in (1, 16, 64):
        seen = await _closed(bench, callers, seconds)
        rows.append(("closed", f"{callers}", *seen.row()))
    for rate in (2_000, 4_000, 6_000):
        for name, pair in (("open, control", control), ("open", bench.pair)):
            seen = await _open(bench, pair, rate, 2 * seconds)
            rows.append((name, f"{rate:,}/s", *seen.row()))
    show(
        "Acquire-and-settle pairs through one adapter",
        ("loop", "callers or offered", "pairs/s", "p50 ms", "p99 ms",
         "p99 ms of the least disturbed quarter of half seconds", "adapter CPU µs a pair",
         "server CPU µs a pair"),
        rows,
    )  # fmt: skip


@dataclass
class Pairs:
    """What was seen of pairs: when each should have begun and how long it took, in seconds."""

    took: list[tuple[float, float]]
    passed_s: float
    client_s: float
    server_s: float

    def row(self) -> tuple[str, ...]:
        """For the table."""
        times = sorted(time_s for _, time_s in self.took)
        decided = sum(each < float("inf") for each in times)
        windows: dict[int, list[float]] = {}
        for due, time_s in self.took:
            windows.setdefault(int(due / WINDOW_S), []).append(time_s)
        last = max(windows)  # it may hold a few pairs only
        by_window = sorted(
            nearest_rank(sorted(each), 99)
            for number, each in windows.items()
            if number < last or last == 0
        )
        return (
            f"{decided / self.passed_s:,.0f}",
            *(f"{nearest_rank(times, rank) * 1000:.2f}" for rank in (50, 99)),
            f"{by_window[len(by_window) // 4] * 1000:.2f}",
            f"{self.client_s / len(times) * 1e6:.0f}",
            f"{self.server_s / len(times) * 1e6:.0f}",
        )


async def _closed(bench: Bench, callers: int, seconds: float) -> Pairs:
    took: list[tuple[float, float]] = []
    began = time.perf_counter()

    async def caller(number: int) -> None:
        while (due := time.perf_counter()) < began + seconds:
            time_s = await bench.timed(bench.pair, f"t{number % PAIR_TENANTS}", due)
            took.append((due - began, time_s))

    return await _timed(bench, took, asyncio.gather(*(caller(n) for n in range(callers))))


async def _open(
    bench: Bench, pair: Callable[[str], Awaitable[None]], rate: int, seconds: float
) -> Pairs:
    """Poisson arrivals; a pair's time counts from when it should have begun."""
    took: list[tuple[float, float]] = []
    seeded = random.Random(5)  # noqa: S311 - arrivals

    async def one(due: float, offset: float, tenant: str) -> None:
        took.append((offset, await bench.timed(pair, tenant, due)))

    async def arrivals() -> None:
        began = due = time.perf_counter()
        running: set[asyncio.Task[None]] = set()
        while due < began + seconds:
            due += seeded.expovariate(rate)
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            tenant = f"t{seeded.randrange(PAIR_TENANTS)}"
            task = asyncio.create_task(one(due, due - began, tenant))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)

    return await _timed(bench, took, arrivals())


async def _timed(bench: Bench, took: list[tuple[float, float]], work: Awaitable[object]) -> Pairs:
    server_s, client_s, began = bench.server_cpu_s(), time.process_time(), time.perf_counter()
    await work
    passed_s = time.perf_counter() - began
    return Pairs(took, passed_s, time.process_time() - client_s, bench.server_cpu_s() - server_s)


async def fill(bench: Bench, tenants: Callable[[int], str], first: int, last: int) -> None:
    """Leases that stay."""
    numbers = iter(range(first, last))

    async def caller() -> None:
        for number in numbers:
            await bench.acquire(tenants(number))

    await asyncio.gather(*(caller() for _ in range(TOGETHER)))


async def measure_growth(count: int, sizes: tuple[int, ...]) -> None:
    """A pair's cost with so many tenants, or so many leases of one; and the bytes of each."""
    rows: list[tuple[str, ...]] = []
    for name, share in (("tenants with a lease each", 1), ("leases of one tenant", sizes[-1])):

        async def grow(bench: Bench, name: str = name, share: int = share) -> None:
            rows.extend([row async for row in _grown(bench, name, share, count, sizes)])

        await with_bench(grow)
    show(
        "A pair's cost as the store grows",
        ("what there is", "how many", "server CPU µs a pair", "of it in the two scripts µs",
         "bytes each"),
        rows,
    )  # fmt: skip


async def _grown(
    bench: Bench, name: str, share: int, count: int, sizes: tuple[int, ...]
) -> AsyncIterator[tuple[str, ...]]:
    """A row for each size; `share` leases have a tenant together."""
    await bench.pair("warm")
    empty, have = await bench.used_memory(), 0
    picked = random.Random(3)  # noqa: S311 - which tenants
    for size in sizes:
        await fill(bench, lambda number: f"t{number // share}", have, size)
        have = size
        held = await bench.used_memory() - empty
        some = [f"t{picked.randrange(size) // share}" for _ in range(count)]
        costs = [
            await bench.cost(lambda n, some=some: bench.pair(some[n]), count)  # type: ignore[misc]
            for _ in range(ROUNDS)
        ]
        middle = sorted(costs)[ROUNDS // 2]
        yield (
            name, f"{size:,}", f"{middle.server_us:.1f}", f"{2 * middle.command_us:.1f}",
            f"{held / size:,.0f}",
        )  # fmt: skip


async def run(only: set[str], quick: bool) -> None:
    """All that was asked for."""
    gc.collect()
    gc.freeze()  # as a gateway does, or a full collection holds everything up for some 30 ms
    calls = 50 if quick else 400
    click.echo(f"load averages {os.getloadavg()}")
    if "server" in only:
        await with_bench(lambda bench: measure_server(bench, calls))
    if "pairs" in only:
        seconds = 0.5 if quick else 3.0
        await with_bench(lambda bench: measure_pairs(bench, seconds), timeout_ms=100)
    if "growth" in only:
        await measure_growth(calls, SIZES[:2] if quick else SIZES)
    click.echo(f"\nload averages {os.getloadavg()}")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="server,pairs,growth", help="Which tables.")
    parser.add_argument("--quick", action="store_true", help="To see that it runs.")
    arguments = parser.parse_args()
    uvloop.run(run(set(arguments.only.split(",")), arguments.quick))


if __name__ == "__main__":
    main()
