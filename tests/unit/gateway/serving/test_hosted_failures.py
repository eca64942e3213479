"""Hosted providers that fail or say too little: what is tried next, and what is recorded."""

import asyncio
from collections.abc import Sequence

import engine_events as events
import pytest
from hosted_examples import a_provider
from hosted_gateway import REFUSED, a_gateway, circuit_of, failures_of
from memory_gateway import error_of, until
from scripted_engine import HANG, Step

from billing.domain.usage_record import Outcome
from gateway.domain.circuit import CircuitState
from gateway.domain.hosted import HostedModel
from gateway.errors import WorkerFailed
from gateway.serving.ports import EngineRefused

FORMS = pytest.mark.parametrize("stream", [True, False])


async def test_what_was_not_sent_tells_nothing_of_the_provider() -> None:
    """However often."""
    gateway = a_gateway(*[events.answer(["a"])] * 7)
    gateway.engine.on_connected = lambda: setattr(gateway.directory, "age_ms", 1_001)
    for _ in range(6):
        gateway.directory.age_ms = 0
        await gateway.post()
    assert circuit_of(gateway) is CircuitState.CLOSED


async def test_no_price_is_no_cost() -> None:
    """Unknown is NULL, never 0."""
    provider = a_provider(models={"m": HostedModel(name="x")})
    gateway = a_gateway(events.answer(["a"]), providers=[provider])
    await gateway.post()
    assert gateway.record.attempts[0].provider_cost_pico is None


async def test_the_next_provider_when_one_fails() -> None:
    """By rank; two at most."""
    first, second = a_provider("one", rank=1), a_provider("two", rank=2)
    gateway = a_gateway([REFUSED], events.answer(["a"]), providers=[second, first])
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert [a.provider for a in record.attempts] == ["hosted:one", "hosted:two"]


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (REFUSED, 503, "no_worker"),
        (WorkerFailed("500"), 502, "worker_failed"),
        (EngineRefused(401, "bad key"), 502, "worker_failed"),
        (EngineRefused(429, "slow down"), 503, "no_capacity"),
    ],
)
async def test_a_provider_that_fails_is_left_alone(
    failure: Exception, status: int, code: str
) -> None:
    """Q15, Q16: five failures open the circuit, nothing is sent for five seconds, then one try."""
    gateway = a_gateway(*[[failure]] * 6, events.answer(["a"]))
    for _ in range(5):
        client = await gateway.post()
        assert (client.status, error_of(client)["code"]) == (status, code)
    assert circuit_of(gateway) is CircuitState.OPEN
    assert error_of(await gateway.post())["code"] == "no_worker"
    assert len(gateway.engine.streams) == 5
    gateway.clock.advance(5_000)
    await gateway.post()
    assert circuit_of(gateway) is CircuitState.OPEN
    gateway.clock.advance(9_999)
    assert circuit_of(gateway) is CircuitState.OPEN
    gateway.clock.advance(1)
    assert (await gateway.post()).status == 200
    assert circuit_of(gateway) is CircuitState.CLOSED


async def test_a_refusal_of_one_request_is_no_failure() -> None:
    """A 400 says something of the request, or of what this provider does not know: the next one is
    asked, and in the end the fleet may take what no provider does."""
    gateway = a_gateway(*[[EngineRefused(400, "no")]] * 6)
    for _ in range(6):
        client = await gateway.post()
        assert (client.status, error_of(client)["code"]) == (503, "no_worker")
    assert circuit_of(gateway) is CircuitState.CLOSED
    assert {r.attempts[0].provider_cost_pico for r in gateway.journal.records} == {0}
    providers = [a_provider("one"), a_provider("two")]
    gateway = a_gateway([EngineRefused(400, "no")], events.answer(["a"]), providers=providers)
    assert (await gateway.post()).status == 200


async def test_a_client_that_leaves_tells_nothing_of_the_provider() -> None:
    """Neither a failure nor, in the half-open circuit, a place that stays taken."""
    gateway = a_gateway(*[[REFUSED]] * 5, [HANG], events.answer(["a"]))
    gateway.engine.after_abort = [None] * 6
    for _ in range(5):
        await gateway.post()
    gateway.clock.advance(5_000)
    client = gateway.a_client(stream=True)
    async with asyncio.TaskGroup() as group:
        group.create_task(gateway.serve(client))
        await until(lambda: len(gateway.engine.streams) == 6)
        client.leave()
    assert gateway.journal.records[-1].outcome is Outcome.CLIENT_CANCELLED
    assert (await gateway.post()).status == 200


@pytest.mark.parametrize(("script", "after_ms"), [([HANG], 7_000), ([events.role(), HANG], 3_000)])
async def test_a_provider_has_time_outs_of_its_own(script: Sequence[Step], after_ms: int) -> None:
    """To the first event, after which the next is asked, and between two; shorter than the
    workers' here."""
    providers = [
        a_provider("one", first_event_timeout_ms=7_000, stall_timeout_ms=3_000),
        a_provider("two"),
    ]
    gateway = a_gateway(script, events.answer(["a"]), providers=providers)
    gateway.engine.after_abort = [None, None]
    watching = asyncio.create_task(gateway.live.run())
    asking = asyncio.create_task(gateway.post(stream=True))
    began = len(script) > 1

    def silent() -> bool:
        watches = [watch for live in gateway.live._live for watch in live.watches]
        return bool(watches) and all(watch.saw_event == began for watch in watches)

    await until(silent)
    gateway.clock.advance(after_ms + 1)
    client = await asking
    watching.cancel()
    await asyncio.wait([watching])
    record = gateway.record
    outcomes = [attempt.outcome for attempt in record.attempts]
    if began:
        assert (record.outcome, outcomes) == (Outcome.TIMED_OUT, [Outcome.TIMED_OUT])
        assert error_of(client)["code"] == "worker_timeout"
    else:
        assert outcomes == [Outcome.TIMED_OUT, Outcome.COMPLETED]
        assert client.status == 200
    assert failures_of(gateway, "hosted:one") == 1


async def test_what_the_workers_took_is_not_counted_against_the_provider() -> None:
    """Nor is a provider that fails a worker that does."""
    gateway = a_gateway(workers=1)
    provider = a_provider(first_event_timeout_ms=7_000, stall_timeout_ms=3_000)
    gateway.directory.all_providers = [provider]

    def takes_long() -> None:
        gateway.clock.advance(6_900)
        for live in gateway.live._live:
            gateway.live._check(live, gateway.clock.monotonic_us())

    gateway.engine.scripts = [[takes_long, REFUSED], [takes_long, *events.answer(["a"])]]
    assert (await gateway.post()).status == 200
    gateway.engine.scripts += [[REFUSED]]
    assert (await gateway.post()).status == 503
    assert gateway.fleet.unhealthy == {"w0"}


async def test_one_request_is_one_failure_however_many_choices() -> None:
    """And a sibling that we aborted, or that a worker failed, is none of the provider's doing."""
    gateway = a_gateway([EngineRefused(400, "no")], *[[HANG]] * 7)
    gateway.engine.after_abort = [None] * 8
    await gateway.post(n=8)
    assert failures_of(gateway) == 0
    gateway = a_gateway(*[[REFUSED]] * 8)
    await gateway.post(n=8)
    assert failures_of(gateway) == 1
    script: list[Step] = [events.role(), events.content("a"), WorkerFailed("died")]
    gateway = a_gateway(script, [REFUSED], [events.role(), HANG], workers=1)
    gateway.engine.after_abort = [None] * 3
    await gateway.post(n=2, stream=True)
    assert failures_of(gateway) == 0


async def test_several_choices_are_one_try_of_a_half_open_circuit() -> None:
    """All of them go, and the circuit closes."""
    gateway = a_gateway(*[[REFUSED]] * 5, *[events.answer(["a"])] * 3)
    for _ in range(5):
        await gateway.post()
    gateway.clock.advance(5_000)
    assert (await gateway.post(n=3)).status == 200
    assert circuit_of(gateway) is CircuitState.CLOSED


async def test_our_own_longest_duration_is_no_failure_of_the_provider() -> None:
    """It answered all the while."""
    gateway = a_gateway([events.role(), events.content("a"), HANG])
    gateway.engine.after_abort = [None]
    asking = asyncio.create_task(gateway.post(stream=True))
    await until(lambda: any(w.saw_event for live in gateway.live._live for w in live.watches))
    gateway.clock.advance(100_001)
    for live in list(gateway.live._live):
        for watch in live.watches:
            watch.saw(gateway.clock.monotonic_us())
        gateway.live._check(live, gateway.clock.monotonic_us())
    await asking
    assert gateway.record.outcome is Outcome.TIMED_OUT
    assert failures_of(gateway) == 0


@pytest.mark.parametrize(
    "script",
    [
        [events.role(), events.content("a"), WorkerFailed("died")],
        [events.role(), events.content("a"), events.finish()],
        [events.content("a"), events.finish(), WorkerFailed("reset")],
    ],
)
async def test_what_nobody_said_costs_nobody_knows_what(script: Sequence[Step]) -> None:
    """D15: without the provider's final usage the cost is NULL, never a guess; and what breaks
    after the finish leaves row and attempt of one mind."""
    gateway = a_gateway(script)
    await gateway.post(stream=True)
    (attempt,) = gateway.record.attempts
    assert attempt.provider_cost_pico is None
    assert attempt.outcome is gateway.record.outcome


async def test_counts_and_reasons_that_no_column_takes() -> None:
    """The row is written all the same."""
    usage = events.usage(2**31 - 1, 2**31 - 1)
    script = [events.content("a"), events.finish("st\0p"), usage]
    gateway = a_gateway(script, script)
    await gateway.post(n=2)
    record = gateway.record
    assert max(record.prompt_tokens, record.output_tokens) < 2**31
    assert "count_out_of_range" in record.usage_flags
    assert record.finish_reason == "unprintable"
