"""Thousands of requests that a tenant or an administrator might send, most of them wrong.

Seeded: `WEIR_FUZZ_SEED`, `WEIR_FUZZ_CASES`, and `WEIR_FUZZ_ONLY` for the numbers of single cases.
"""

import asyncio
import os
import time
import urllib.parse
from collections import Counter
from dataclasses import dataclass, field

import pytest
import redis
from fuzz.cases import Case, Cases
from fuzz.conftest import Fuzzed
from fuzz.corpus import CANARY, SECRET
from fuzz.verdict import Judge, is_completion
from fuzz.wire_client import Broken, Connection, Reply

SEED = int(os.environ.get("WEIR_FUZZ_SEED", "20261129"))
CASES = int(os.environ.get("WEIR_FUZZ_CASES", "20000"))
AT_ONCE = 10
FAILURES_SHOWN = 20
ADMITTED_SHARE_MIN = 0.2
REPEATED_MAX = 5
REST_WITHIN_S = 20.0


@dataclass
class Run:
    """What the cases came to."""

    failures: list[str] = field(default_factory=list)
    failed: int = 0
    answered: dict[str, int] = field(default_factory=dict)
    """Status by request id, of completions."""
    left: int = 0
    repeated: int = 0
    seconds: float = 0

    def fail(self, number: int, case: Case, what: str) -> None:
        """Take a failure down."""
        self.failed += 1
        if len(self.failures) < FAILURES_SHOWN:
            self.failures.append(
                f"case {number} ({case.kind}): {what}\n"
                f"    {case.request[:700]!r}\n"
                f"    again: WEIR_FUZZ_SEED={SEED} WEIR_FUZZ_ONLY={number} make fuzz"
            )


def numbers() -> list[int]:
    """Which cases run."""
    only = os.environ.get("WEIR_FUZZ_ONLY")
    return [int(each) for each in only.split(",")] if only else list(range(CASES))


@pytest.mark.timeout(600)
async def test_nothing_that_is_sent_does_harm(
    fuzzed: Fuzzed, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every answer is one of the contract's; upstream, limits, records and logs are in order."""
    document = fuzzed.weir.request("GET", fuzzed.weir.gateway() + "/openapi.json").json
    pids = fuzzed.weir.ready["pids"]
    judge, run = Judge(document), Run()
    wanted = numbers()
    with capsys.disabled():
        print(f"\nfuzz: seed {SEED}, {len(wanted)} cases")  # noqa: T201
        await send_all(Cases(SEED, document, fuzzed.keys), wanted, fuzzed, judge, run)
        print_outcomes(judge.outcomes, run)
    assert not run.failures, f"{run.failed} cases failed:\n" + "\n".join(run.failures)
    await at_rest(fuzzed)
    seen = fuzzed.seen()
    assert not seen["faults"], "\n".join(seen["faults"])
    records = await check_records(fuzzed, run, seen["rids"])
    outcomes = Counter(records.values())
    assert_nothing_written(fuzzed)
    assert fuzzed.weir.ready["pids"] == pids, "a process was started again"
    share = len(records) / len(wanted)
    with capsys.disabled():
        print(f"fuzz: {len(records)} admitted ({share:.0%}), {dict(outcomes)}")  # noqa: T201
        print(f"fuzz: fields upstream: {sorted(seen['fields'])}")  # noqa: T201
    if len(wanted) >= 1000:
        assert share >= ADMITTED_SHARE_MIN, "too few cases reach the engine"
        assert {"completed", "refused", "client_cancelled"} <= set(outcomes)


async def send_all(cases: Cases, wanted: list[int], fuzzed: Fuzzed, judge: Judge, run: Run) -> None:
    """A few at once, each on a connection of its own that is kept."""
    parts = urllib.parse.urlsplit(fuzzed.weir.gateway())
    waiting = iter(wanted)
    began = time.monotonic()

    async def client() -> None:
        connection = Connection(parts.hostname or "", parts.port or 80)
        for number in waiting:
            await send(number, cases.case(number), connection, judge, run)
        connection.close()

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    run.seconds = time.monotonic() - began


async def send(number: int, case: Case, connection: Connection, judge: Judge, run: Run) -> None:
    """One case."""
    if case.leave_after is not None:
        await connection.leave(case.request, case.leave_after)
        run.left += 1
        return
    try:
        reply = await connection.exchange(case.request)
        if case.kind == "admin" and reply.status == 503 and run.repeated < REPEATED_MAX:
            # Two seconds are an administrative verb's bound; on a busy machine one may pass them.
            run.repeated += 1
            reply = await connection.exchange(case.request)
    except (Broken, OSError) as error:
        # What follows a body that ended too early is no request: the rest may be cut off.
        if case.well_framed:
            run.fail(number, case, f"no answer: {error!r}")
        return
    except TimeoutError as error:
        run.fail(number, case, f"no answer: {error!r}")
        return
    if not case.well_framed:
        connection.close()
    for fault in judge.faults(case, reply):
        run.fail(number, case, fault)
    note_completion(case, reply, run)


def note_completion(case: Case, reply: Reply, run: Run) -> None:
    """Remember what was answered, to look for its record."""
    if is_completion(case) and "x-request-id" in reply.headers:
        run.answered[reply.headers["x-request-id"]] = reply.status


def print_outcomes(outcomes: Counter[str], run: Run) -> None:
    """What the cases came to, the most frequent first."""
    for outcome, count in outcomes.most_common():
        print(f"  {count:6} {outcome}")  # noqa: T201
    print(f"  {run.left:6} left early\n  {run.repeated:6} repeated")  # noqa: T201
    print(f"fuzz: sent in {run.seconds:.0f} s")  # noqa: T201


async def at_rest(fuzzed: Fuzzed) -> None:
    """INV-1: no lease, no sequence and no reservation is left, in Redis or in what is shown."""
    deadline = time.monotonic() + REST_WITHIN_S
    with redis.Redis.from_url(fuzzed.weir.ready["redis_url"]) as client:
        while held := {
            key: members
            for key in client.scan_iter("weir:{*}:due")
            if (members := client.zrangebyscore(key, 0, 10**15 - 1))
        }:
            assert time.monotonic() < deadline, f"still held: {held}"
            await asyncio.sleep(0.05)
    for secret in (*fuzzed.keys.tenants, fuzzed.keys.limited):
        url = fuzzed.weir.gateway() + "/v1/limits"
        shown = fuzzed.weir.request("GET", url, token=secret).json
        assert (shown["tenant"]["sequences_running"], shown["key"]["sequences_running"]) == (0, 0)


async def check_records(fuzzed: Fuzzed, run: Run, rids: list[str]) -> dict[str, str]:
    """INV-5: one record for every request that reached the engine or was answered, and no other.
    Returns each one's outcome."""
    upstream = {rid[:32] for rid in rids}
    deadline = time.monotonic() + REST_WITHIN_S
    while True:
        rows = await fuzzed.weir.sql("SELECT request_id, outcome, final FROM usage_records")
        records = {row["request_id"].hex: row["outcome"] for row in rows}
        if upstream <= set(records) or time.monotonic() > deadline:
            break
        await asyncio.sleep(0.05)
    assert len(records) == len(rows), "a request has two records"
    assert upstream <= set(records), f"without a record: {sorted(upstream - set(records))[:5]}"
    for request_id, status in run.answered.items():
        outcome = records.get(request_id.replace("-", ""))
        wanted = {"completed"} if status == 200 else {None, "refused"}
        assert outcome in wanted, f"{request_id} was answered {status}, recorded as {outcome}"
    assert sum(ended_by_the_gateway(fuzzed)) == len(records), "admitted and recorded differ"
    return records


def ended_by_the_gateway(fuzzed: Fuzzed) -> list[int]:
    """Admitted requests that ended, as the gateway counts them, by model, class and outcome."""
    shown = fuzzed.weir.request("GET", fuzzed.weir.gateway() + "/metrics").raw.decode()
    return [
        int(float(line.rpartition(" ")[2]))
        for line in shown.splitlines()
        if line.startswith("weir_requests_ended_total{")
    ]


def assert_nothing_written(fuzzed: Fuzzed) -> None:
    """INV-12: no log and no journal holds a prompt or a secret."""
    folder = fuzzed.weir.data_dir
    looked_at = [*folder.rglob("*.log"), *folder.rglob("*journal*/**/*")]
    assert any(path.stat().st_size for path in looked_at if path.is_file())
    for path in looked_at:
        if path.is_file():
            written = path.read_bytes()
            assert CANARY.encode() not in written, f"{path.name} holds a prompt"
            assert SECRET.encode() not in written, f"{path.name} holds a secret"
