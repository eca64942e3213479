"""Whole schedules: drawn, from a trace at its own times and at a rate, and what is refused."""

import json
from pathlib import Path
from statistics import fmean

import pytest

from backend.loadtest.arrivals import OnOff
from backend.loadtest.lengths import Lengths
from backend.loadtest.prefix_templates import PrefixTemplates
from backend.loadtest.workload import WorkloadError, WorkloadSpec, read_workload


@pytest.fixture
def seedlike(tmp_path: Path) -> Path:
    """Ten rows, one a second from 0.5 s on; even ones share prefix 1, odd ones prefix 2."""
    path = tmp_path / "small.jsonl"
    rows = [
        {
            "timestamp": 500 + 1_000 * n,
            "input_length": 100 + n,
            "output_length": 1 + n,
            "tenant": f"t{n % 3:02d}",
            "priority": "batch" if n == 4 else "interactive",
            "prefix_id": 1 + n % 2,
            "prefix_tokens": 60,
        }
        for n in range(10)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def mooncake(tmp_path: Path) -> Path:
    """Four rows in 8 s: two turns of one conversation, then the second again, then another."""
    path = tmp_path / "blocks.jsonl"
    rows = [(0, 1_024, [0, 1]), (1_500, 1_124, [0, 1, 2]), (4_000, 1_124, [0, 1, 2])]
    rows.append((7_900, 512, [9]))
    path.write_text(
        "".join(
            json.dumps({"timestamp": at, "input_length": n, "output_length": 5, "hash_ids": ids})
            + "\n"
            for at, n, ids in rows
        )
    )
    return path


def test_a_trace_keeps_its_own_times_tenants_and_classes(seedlike: Path) -> None:
    workload = read_workload(WorkloadSpec("seedlike", path=seedlike))
    assert [request.send_at_ms for request in workload.requests] == [
        500 + 1_000 * n for n in range(10)
    ]
    assert [request.tenant for request in workload.requests[:4]] == ["t00", "t01", "t02", "t00"]
    assert [r.number for r in workload.requests if r.traffic_class == "batch"] == [4]
    assert [request.prompt_tokens for request in workload.requests] == list(range(100, 110))
    assert (workload.name, workload.duration_ms, workload.offered_rps) == (
        "small.jsonl",
        10_000,
        1.0,
    )
    # The prefix of 60 is found by all but the first of each: 480 of 1,045 tokens.
    assert workload.ideal_hit_rate == pytest.approx(480 / 1_045)


def test_a_trace_begins_and_ends_where_it_is_told(seedlike: Path) -> None:
    workload = read_workload(WorkloadSpec("seedlike", path=seedlike, start_s=2, duration_s=3))
    assert [request.send_at_ms for request in workload.requests] == [500, 1_500, 2_500]
    assert [request.number for request in workload.requests] == [0, 1, 2]
    assert [request.output_tokens for request in workload.requests] == [3, 4, 5]


def test_a_rate_sends_the_rows_in_order_at_fresh_times(seedlike: Path) -> None:
    workload = read_workload(WorkloadSpec("seedlike", path=seedlike, rate_rps=10))
    assert [request.output_tokens for request in workload.requests] == list(range(1, 11))
    assert workload.arrivals == "Poisson at 10 requests per second"
    slower = read_workload(WorkloadSpec("seedlike", path=seedlike, rate_rps=5))
    assert [r.send_at_ms for r in slower.requests] == pytest.approx(
        [2 * r.send_at_ms for r in workload.requests]
    )
    other = read_workload(WorkloadSpec("seedlike", path=seedlike, rate_rps=10, seed=1))
    assert other.requests[0].send_at_ms != workload.requests[0].send_at_ms
    assert other.sha256 == workload.sha256


def test_kept_gaps_are_scaled_to_the_rate(seedlike: Path) -> None:
    spec = WorkloadSpec("seedlike", path=seedlike, rate_rps=4, keep_gaps=True)
    workload = read_workload(spec)
    assert [request.send_at_ms for request in workload.requests[:3]] == [125, 375, 625]
    assert workload.offered_rps == pytest.approx(4)


def test_mooncake_scales_its_gaps_and_finds_its_blocks(mooncake: Path) -> None:
    workload = read_workload(WorkloadSpec("mooncake", path=mooncake, rate_rps=1))
    assert [r.send_at_ms for r in workload.requests] == pytest.approx([0, 750, 2_000, 3_950])
    # 1,024 found by the second, and by the third all but the token that is always computed.
    assert workload.ideal_hit_rate == pytest.approx((1_024 + 1_123) / (1_024 + 1_124 * 2 + 512))
    poisson = WorkloadSpec("mooncake", path=mooncake, rate_rps=1, keep_gaps=False)
    assert read_workload(poisson).arrivals == "Poisson at 1 requests per second"


def test_long_prompts_of_a_trace_are_left_out(mooncake: Path) -> None:
    workload = read_workload(WorkloadSpec("mooncake", path=mooncake, max_input_tokens=1_024))
    assert [request.prompt_tokens for request in workload.requests] == [1_024, 512]
    assert "prompts of more than 1024 tokens left out" in workload.arrivals


def test_drawn_requests_are_like_the_seedlike_trace() -> None:
    workload = read_workload(WorkloadSpec("poisson", rate_rps=8, duration_s=600))
    requests = workload.requests
    assert fmean(r.prompt_tokens for r in requests) == pytest.approx(2_010, rel=0.05)
    assert fmean(r.output_tokens for r in requests) == pytest.approx(402, rel=0.08)
    assert fmean(r.traffic_class == "batch" for r in requests) == pytest.approx(0.3, abs=0.035)
    assert 30 <= len({r.tenant for r in requests}) <= 40
    assert 0.5 < workload.ideal_hit_rate < 0.59
    assert max(r.prompt_tokens for r in requests) <= 32_768
    assert max(r.output_tokens for r in requests) <= 4_096


def test_a_prefix_belongs_to_one_tenant() -> None:
    workload = read_workload(WorkloadSpec("poisson", rate_rps=20, duration_s=60, tenants=7))
    owners: dict[str, set[str]] = {}
    for request in workload.requests:
        owners.setdefault(request.segments[0].key, set()).add(request.tenant)
    assert {len(tenants) for tenants in owners.values()} == {1}
    assert len({request.tenant for request in workload.requests}) == 7


def test_another_rate_sends_the_same_requests() -> None:
    slow = read_workload(WorkloadSpec("poisson", rate_rps=2, duration_s=50))
    fast = read_workload(WorkloadSpec("poisson", rate_rps=4, duration_s=50))
    common = len(slow.requests)
    assert common < len(fast.requests)
    assert [r.segments for r in fast.requests[:common]] == [r.segments for r in slow.requests]


def test_lengths_can_be_given_and_prefixes_left_away() -> None:
    spec = WorkloadSpec(
        "poisson",
        rate_rps=50,
        duration_s=10,
        suffix_lengths=Lengths.parse("uniform:819-1024"),
        output_lengths=Lengths.fixed(1_024),
        prefixes=PrefixTemplates.parse("none"),
        tenants=3,
    )
    workload = read_workload(spec)
    assert {request.output_tokens for request in workload.requests} == {1_024}
    assert all(819 <= request.prompt_tokens <= 1_024 for request in workload.requests)
    assert {request.tenant for request in workload.requests} == {"t00", "t01", "t02"}
    assert workload.ideal_hit_rate == 0


def test_drawn_prompts_are_cut_to_the_longest_and_keep_a_token_of_their_own() -> None:
    spec = WorkloadSpec("poisson", rate_rps=50, duration_s=10, max_input_tokens=100)
    workload = read_workload(spec)
    assert max(request.prompt_tokens for request in workload.requests) == 100
    assert {request.segments[-1].key[:8] for request in workload.requests} == {"request-"}


def test_bursts_say_what_they_are() -> None:
    plain = read_workload(WorkloadSpec("bursts", rate_rps=5, duration_s=60))
    assert (plain.name, plain.arrivals) == ("bursts", "gamma:2 at 5 requests per second")
    cycles = WorkloadSpec("bursts", rate_rps=5, duration_s=60, bursts=OnOff(4, 10, 50))
    assert read_workload(cycles).arrivals == "onoff:4,10,50 at 5 requests per second"


def test_the_digest_names_the_parameters_defaults_and_all() -> None:
    plain = WorkloadSpec("poisson", rate_rps=5, duration_s=10)
    spelled = WorkloadSpec("poisson", rate_rps=5.0, duration_s=10.0, tenants=40, batch_share=0.3)
    other = WorkloadSpec("poisson", rate_rps=5, duration_s=10, tenants=41)
    assert read_workload(plain).sha256 == read_workload(spelled).sha256
    assert read_workload(plain).sha256 != read_workload(other).sha256


def test_a_trace_that_is_too_short_says_how_long_it_lasts(seedlike: Path) -> None:
    with pytest.raises(WorkloadError, match=r"small.jsonl lasts 10.0 s from 0 s on .*, not 11 s"):
        read_workload(WorkloadSpec("seedlike", path=seedlike, duration_s=11))
    with pytest.raises(WorkloadError, match=r"lasts 5.0 s from 0 s on .* not 6 s"):
        read_workload(
            WorkloadSpec("seedlike", path=seedlike, duration_s=6, rate_rps=2, keep_gaps=True)
        )
    with pytest.raises(WorkloadError, match=r"at 100 requests per second\), not 9 s"):
        read_workload(WorkloadSpec("seedlike", path=seedlike, duration_s=9, rate_rps=100))


def test_a_window_without_requests_is_refused(seedlike: Path, tmp_path: Path) -> None:
    for spec, said in [
        (WorkloadSpec("seedlike", path=seedlike, start_s=9.6), "no requests from 9.6 s on"),
        (WorkloadSpec("seedlike", path=seedlike, max_input_tokens=99), "at most 99 prompt tokens"),
        (WorkloadSpec("seedlike", path=seedlike, duration_s=0.4), "nothing is sent in 0.4 s"),
        (WorkloadSpec("poisson", rate_rps=1e-6, duration_s=1), "nothing is sent in 1 s"),
        (WorkloadSpec("seedlike", path=tmp_path / "absent"), "absent: no such file or directory"),
        (WorkloadSpec("mooncake", path=tmp_path), "is a directory"),
    ]:
        with pytest.raises(WorkloadError, match=said):
            read_workload(spec)
