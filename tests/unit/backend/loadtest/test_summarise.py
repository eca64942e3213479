"""What a run comes to, by hand: ten seconds, of which two are warm-up."""

import msgspec
import pytest
from made_up_runs import lively_run, outcome, run_of

from backend.loadtest.measure import GoodputTargets
from backend.loadtest.run import Outcome, WorkerSample
from backend.loadtest.run_table import run_facts
from backend.loadtest.steady import queue_grows
from backend.loadtest.summarise import summarise
from backend.loadtest.summary import Summary
from backend.loadtest.sweep import trial


def eight_requests() -> list[Outcome]:
    """One in the warm-up, seven in the window: four good, one slow, one long, two refused less."""
    return [
        outcome(0, send_at_ms=1_000, tenant="warm"),
        outcome(1, send_at_ms=2_000, ttft_ms=100, tpot_ms=10),
        outcome(2, send_at_ms=3_000, ttft_ms=200, tpot_ms=20),
        outcome(3, send_at_ms=4_000, ttft_ms=300, tpot_ms=50, traffic_class="batch"),
        outcome(4, send_at_ms=5_000, ttft_ms=900, tpot_ms=10, prompt_tokens=5_000),
        outcome(5, send_at_ms=6_000, ttft_ms=400, tpot_ms=40, tenant="globex"),
        outcome(6, send_at_ms=7_000, ttft_ms=None, end="rate_limited", tenant="globex"),
        outcome(7, send_at_ms=9_900, ttft_ms=500, output_tokens=1, cached_tokens=None),
    ]


def summed() -> Summary:
    """Of those."""
    return summarise(run_of(eight_requests()), warmup_ms=2_000)


def test_only_what_was_planned_for_the_window_counts() -> None:
    """Seven requests in eight seconds."""
    summary = summed()
    assert summary.all.sent == 7
    assert summary.all.finished == 6
    assert summary.load.offered_rps == 7 / 8
    assert summary.all.finished_rps == 6 / 8
    assert summary.load.requests == 8
    assert summary.load.window_ms == 8_000
    # The last one ends after the window: its first token comes at 10.4 s.
    assert summary.load.achieved_rps == 5 / 8


def test_attainment_is_of_what_was_sent() -> None:
    """Good: 1, 2, 5 and 7. Slow tokens: 3. Slow first token: 4. Refused: 6."""
    goodput = summed().all.goodput
    assert goodput.good == 4
    assert goodput.attainment_share == 4 / 7
    assert goodput.goodput_rps == 4 / 8
    assert goodput.ttft_met_share == 5 / 7
    assert goodput.tpot_met_share == 5 / 7


def test_both_readings_of_the_ttft_target_are_there() -> None:
    """Request 4 has 5,000 prompt tokens: by DESIGN's words its TTFT is not asked for."""
    summary = summed()
    assert summary.ttft_for_every_prompt.good == 4
    assert summary.ttft_for_short_prompts.good == 5
    asked = summarise(
        run_of(eight_requests()), GoodputTargets(prompt_tokens_under=4_000), warmup_ms=2_000
    )
    assert asked.all.goodput.good == 5
    assert summary.short_prompts.sent == 6


def test_latencies_are_of_those_that_ended_whole() -> None:
    """TTFT: 100, 200, 300, 400, 500, 900. TPOT: 10, 10, 20, 40, 50. Ten gaps each."""
    group = summed().all
    assert group.ttft is not None
    assert group.tpot is not None
    assert group.itl is not None
    assert group.e2e is not None
    assert (group.ttft.p50_ms, group.ttft.p95_ms, group.ttft.mean_ms) == (300, 900, 400)
    assert (group.tpot.p50_ms, group.tpot.p99_ms, group.tpot.count) == (20, 50, 5)
    assert (group.itl.count, group.itl.p50_ms, group.itl.max_ms) == (50, 20, 50)
    # 200, 400, 800, 1,000, 800 and 500 ms.
    assert (group.e2e.p50_ms, group.e2e.max_ms) == (500, 1_000)


def test_classes_and_tenants_are_apart() -> None:
    """The most first; the warm-up's tenant is not there."""
    summary = summed()
    assert [(group.name, group.sent) for group in summary.by_class] == [
        ("interactive", 6),
        ("batch", 1),
    ]
    assert [(group.name, group.sent) for group in summary.by_tenant] == [("acme", 5), ("globex", 2)]
    assert summary.by_class[1].goodput.attainment_share == 0
    top = summarise(run_of(eight_requests()), warmup_ms=2_000, top_tenants=1)
    assert [group.name for group in top.by_tenant] == ["acme"]


def test_tokens_count_where_they_flowed() -> None:
    """First tokens of 1 to 5 came in the window; request 7's only token after it."""
    tokens = summed().tokens
    assert tokens.input_tokens_per_s == (4 * 1_000 + 5_000) / 8
    assert tokens.cached_tokens_per_s == 5 * 600 / 8
    assert tokens.output_tokens_per_s == pytest.approx(5 * 11 / 8)
    assert tokens.output_planned_share == 1


def test_a_stream_across_the_edge_counts_in_part() -> None:
    """Eleven tokens over 1,000 ms of which 250 lie in the window."""
    edge = outcome(0, send_at_ms=9_000, ttft_ms=750, tpot_ms=100)
    summary = summarise(run_of([edge]))
    assert summary.tokens.output_tokens_per_s == pytest.approx(11 * 0.25 / 10)


def test_in_flight_is_over_time() -> None:
    """Two requests of 200 ms that overlap by 100: 400 ms of 10 s; what ends as one starts is 1."""
    pair = [outcome(0, send_at_ms=1_000), outcome(1, send_at_ms=1_100)]
    summary = summarise(run_of(pair))
    assert summary.load.in_flight_mean == pytest.approx(0.04)
    assert summary.load.in_flight_max == 2
    after = [outcome(0, send_at_ms=1_000), outcome(1, send_at_ms=1_200)]
    assert summarise(run_of(after)).load.in_flight_max == 1


def test_what_never_ended_was_in_flight_to_the_last() -> None:
    """And waited as long: a queue that nobody leaves grows."""
    stuck = [
        outcome(at, send_at_ms=at * 1_000, ttft_ms=None, end="timeout") for at in (0, 1, 2, 3, 4)
    ]
    for made in stuck:
        made.ended_at_ms = None
    assert summarise(run_of(stuck)).load.in_flight_max == 5
    late = [outcome(at, send_at_ms=at * 1_000, ttft_ms=None, end="timeout") for at in range(5, 10)]
    for made in late:
        made.ended_at_ms = None
    assert queue_grows(run_of([outcome(0, send_at_ms=at * 1_000) for at in range(5)] + late))


def test_hit_rate_is_cached_of_prompt_where_it_was_said() -> None:
    """Window: 5 x 600 of 9,000 (the last said nothing). Run: the warm-up's too."""
    hit = summed().hit_rate
    assert hit.window_share == 3_000 / 9_000
    assert hit.run_share == 3_600 / 10_000
    assert hit.unreported == 1


def test_ends_and_codes_are_counted() -> None:
    """Most first."""
    refused = outcome(1, send_at_ms=5, ttft_ms=None, end="rate_limited")
    refused.code = "rate_limit_exceeded"
    summary = summarise(run_of([refused, outcome(2), outcome(3)]))
    assert summary.ends == {"ok": 2, "rate_limited": 1}
    assert summary.error_codes == {"rate_limit_exceeded": 1}


def test_workers_are_by_their_samples_in_the_window() -> None:
    """Two workers; a sample of the warm-up is left out."""
    samples = [
        WorkerSample(1_000, "a", 99, 9, 999, 100, 100),
        WorkerSample(3_000, "a", 10, 0, 0, 50, 100),
        WorkerSample(4_000, "a", 20, 2, 300, 70, 100),
        WorkerSample(3_000, "b", 5, 0, 0, 10, 100),
    ]
    fleet = summarise(run_of(eight_requests(), samples=samples), warmup_ms=2_000).fleet
    a, b = fleet.workers
    assert (a.worker, a.samples, a.running_mean, a.running_max) == ("a", 2, 15, 20)
    assert (a.waiting_tokens_mean, a.waiting_tokens_max) == (150, 300)
    assert (a.kv_used_mean_share, a.kv_used_max_share) == pytest.approx((0.6, 0.7))
    assert (b.running_mean, b.kv_used_max_share) == (5, 0.1)
    assert fleet.running_spread == 10
    assert fleet.kv_used_spread_share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("written", "match"), [(6, False), (7, True), (8, True), (9, False), (None, None)]
)
def test_rows_are_one_for_each_answer_that_began(written: int | None, match: bool | None) -> None:
    """Seven answers began, one failed without saying how far it came, a 429 has no row."""
    outcomes = eight_requests()
    lost = outcome(8, send_at_ms=9_000, ttft_ms=None, end="unreachable")
    rows = summarise(run_of([*outcomes, lost], rows_written=written)).rows
    assert (None if rows is None else rows.match) is match
    if rows is not None:
        assert (rows.begun, rows.undecided) == (7, 1)


def test_a_queue_grows_by_half_and_by_a_tenth_of_a_second() -> None:
    """Means of the halves, by when they were to be sent."""

    def halves(early_ms: float, late_ms: float) -> bool:
        return queue_grows(
            run_of(
                [
                    outcome(at, send_at_ms=at * 1_000, ttft_ms=early_ms if at < 5 else late_ms)
                    for at in range(10)
                ]
            )
        )

    assert halves(400, 601)
    assert not halves(400, 600)
    assert not halves(100, 199)
    assert not halves(600, 100)


def test_the_queue_that_decides_is_the_interactive_one() -> None:
    """A gateway that holds batch back on purpose is not one that cannot keep up."""

    def grown(**waits: int) -> Summary:
        return summarise(
            run_of(
                [
                    outcome(
                        at,
                        send_at_ms=at * 100,
                        ttft_ms=100 + at * growth_ms,
                        traffic_class="batch" if name == "batch" else "interactive",
                    )
                    for name, growth_ms in waits.items()
                    for at in range(100)
                ]
            )
        )

    held = grown(interactive=0, batch=20)
    assert not held.queue_grows
    assert {group.name: group.queue_grows for group in held.by_class} == {
        "interactive": False,
        "batch": True,
    }
    assert any("queue of batch requests grows" in warning for warning in held.warnings)
    table = dict(run_facts(held).lines)
    assert table["queue"] == "interactive does not grow; batch GROWS: no steady state"
    assert not trial(held).queue_grows
    assert grown(interactive=20, batch=0).queue_grows
    assert grown(batch=20).queue_grows


def test_what_timed_out_without_a_token_waited_until_then() -> None:
    """Else a queue that kills everyone would seem short."""
    outcomes = [outcome(at, send_at_ms=at * 1_000) for at in range(6)]
    for at in range(6, 10):
        lost = outcome(at, send_at_ms=at * 1_000, ttft_ms=None, end="timeout")
        lost.ended_at_ms = lost.planned.send_at_ms + 5_000
        outcomes.append(lost)
    assert queue_grows(run_of(outcomes))
    refused = [outcome(at, send_at_ms=at * 1_000) for at in range(6)]
    refused += [
        outcome(at, send_at_ms=at * 1_000, ttft_ms=None, end="rate_limited") for at in range(6, 10)
    ]
    assert not queue_grows(run_of(refused))


def test_a_late_generator_refuses_the_run() -> None:
    """Its figures stay, with the reason."""
    late = [outcome(at, lag_ms=11) for at in range(100)]
    summary = summarise(run_of(late))
    assert summary.refused
    assert summary.generator.send_lag_p99_ms == 11
    assert not summarise(run_of([outcome(at, lag_ms=9) for at in range(100)])).refused


def test_a_warm_up_as_long_as_the_run_is_refused() -> None:
    """There is nothing to measure."""
    with pytest.raises(ValueError, match="leaves nothing"):
        summarise(run_of(eight_requests()), warmup_ms=10_000)


def test_a_run_in_which_nothing_ended_has_no_latency() -> None:
    """And no attainment, and no division by zero."""
    summary = summarise(run_of([outcome(0, ttft_ms=None, end="unreachable")]))
    assert summary.all.ttft is None
    assert summary.all.goodput.attainment_share == 0
    assert summarise(run_of([])).refused


def test_a_summary_is_json_and_back() -> None:
    """Nothing is lost on the way."""
    summary = summarise(lively_run(8), warmup_ms=20_000)
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary
