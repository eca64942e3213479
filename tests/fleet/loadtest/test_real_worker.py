"""The open loop against simulated workers as processes."""

import asyncio
import socket
from collections.abc import Iterator
from statistics import median

import pytest
from worker_process import WorkerProcess, connected, running_worker

from backend.loadtest.chat_body import chat_bodies
from backend.loadtest.http_target import HttpTarget
from backend.loadtest.plan import PlannedRequest, Segment, Workload
from backend.loadtest.prompts import PromptText
from backend.loadtest.run import End, Run
from backend.loadtest.target_facts import TargetNotReady, target_facts

SPEED = 5.0
REQUESTS = 40
OUTPUT_TOKENS = 12


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    """One whose clock runs five times as fast as ours."""
    with running_worker("simulated", "--model", "tiny", "--speed", str(SPEED)) as running:
        yield running


def workload(requests: int = REQUESTS, *, every_ms: float = 50.0) -> Workload:
    planned = tuple(
        PlannedRequest(
            number,
            number * every_ms,
            "acme",
            "interactive",
            (Segment("shared", 200), Segment(f"own-{number}", 50)),
            OUTPUT_TOKENS,
        )
        for number in range(requests)
    )
    return Workload("made-up", "", 0, "evenly", planned, requests * every_ms, 0.0)


async def run_on(worker: WorkerProcess, schedule: Workload) -> Run:
    facts = await target_facts(worker.url, "tiny", None)
    bodies = chat_bodies("tiny", PromptText("salt").messages, min_tokens=True, flex=True)
    target = HttpTarget(worker.url, facts, body_of=bodies, workers={"w": worker.url})
    return await target.run(schedule)


async def test_a_simulated_worker_is_measured_on_its_own_clock(worker: WorkerProcess) -> None:
    """It says what it is; every time is the simulated one; tokens are its own count."""
    run = await run_on(worker, workload())
    assert run.target.simulated is True
    assert run.target.clock_speed == SPEED
    assert run.target.step_times == "h100x4-70b-fp8"
    assert {outcome.end for outcome in run.outcomes} == {"ok"}
    assert {outcome.output_tokens for outcome in run.outcomes} == {OUTPUT_TOKENS}
    assert {len(outcome.gaps_ms) for outcome in run.outcomes} <= {*range(1, OUTPUT_TOKENS)}
    lags_ms = [sample.step_lag_ms for sample in run.samples]
    assert lags_ms[0] is not None, "how late its steps end was not asked"
    assert len(lags_ms) == 1 or None in lags_ms, "it is asked as often as its load"
    assert all(outcome.prompt_tokens >= 250 for outcome in run.outcomes)
    assert run.outcomes[-1].cached_tokens is not None
    assert run.outcomes[-1].cached_tokens >= 200
    # A decode step of this profile takes 11 ms and more; without its clock's speed it were 2.
    took_ms = [(o.ended_at_ms or 0.0) - o.planned.send_at_ms for o in run.outcomes]
    assert min(took_ms) >= 11 * (OUTPUT_TOKENS - 1)
    assert median(took_ms) <= 1500
    assert len(run.samples) >= 2
    assert all(sample.kv_total_tokens == 640_000 for sample in run.samples)
    assert max(sample.running for sample in run.samples) > 0
    apart_ms = run.samples[-1].at_ms - run.samples[0].at_ms
    assert apart_ms / (len(run.samples) - 1) == pytest.approx(1000, abs=500)


@pytest.mark.parametrize(
    ("fault", "end"),
    [
        ({"kind": "error_500"}, "failed"),
        ({"kind": "error_event", "after_tokens": 2}, "failed"),
        ({"kind": "queue_full"}, "unavailable"),
        ({"kind": "drop_finish", "after_tokens": 2}, "cut"),
        ({"kind": "die_midstream", "after_tokens": 2}, "cut"),
        ({"kind": "reset", "after_tokens": 2}, "cut"),
    ],
)
async def test_an_engines_own_failures(
    worker: WorkerProcess, fault: dict[str, object], end: End
) -> None:
    """Each is told apart, in the form in which SGLang shows it."""
    async with connected(worker) as client:
        status, _ = await client.post("/weir/faults", fault)
        assert status < 300
    [outcome] = (await run_on(worker, workload(1))).outcomes
    assert outcome.end == end


async def test_no_usage_is_no_count(worker: WorkerProcess) -> None:
    """Events are not tokens: what the target does not say is not made up."""
    async with connected(worker) as client:
        await client.post("/weir/faults", {"kind": "drop_usage"})
    [outcome] = (await run_on(worker, workload(1))).outcomes
    assert (outcome.end, outcome.output_tokens, outcome.cached_tokens) == ("ok", 0, None)


async def test_aborted_by_the_engine(worker: WorkerProcess) -> None:
    """A finish reason `abort` is no answer."""
    async with connected(worker) as client:
        await client.post("/weir/faults", {"kind": "stall", "after_tokens": 2})

        async def abort_all() -> None:
            await client.eventually_load(num_running_reqs=1)
            await client.abort(abort_all=True)

        run, _ = await asyncio.gather(run_on(worker, workload(1)), abort_all())
    assert [outcome.end for outcome in run.outcomes] == ["aborted"]


async def test_a_model_that_it_does_not_serve(worker: WorkerProcess) -> None:
    """One line, before anything is sent."""
    with pytest.raises(TargetNotReady, match=r"does not serve 'small', but tiny$"):
        await target_facts(worker.url, "small", None)


async def test_nobody_at_the_url() -> None:
    """One line."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(TargetNotReady, match=rf"^http://127.0.0.1:{port} cannot be reached"):
        await target_facts(f"http://127.0.0.1:{port}", "tiny", None)


async def test_what_the_caller_knows_counts(worker: WorkerProcess) -> None:
    """A gateway cannot say what is behind it."""
    facts = await target_facts(worker.url, "tiny", None, simulated=None, clock_speed=2.0)
    assert (facts.simulated, facts.clock_speed) == (True, 2.0)
    facts = await target_facts(worker.url + "/v1/", "tiny", None, simulated=False)
    assert (facts.simulated, facts.clock_speed) == (False, SPEED)
