"""What holds of every workload, whatever it is asked to be."""

import math

import hypothesis.strategies as st
from hypothesis import given, settings

from backend.loadtest.arrivals import Bursts, GammaGaps, OnOff
from backend.loadtest.ideal_hits import ideal_hit_rate
from backend.loadtest.lengths import Lengths
from backend.loadtest.plan import PlannedRequest, Segment
from backend.loadtest.prefix_templates import PrefixTemplates
from backend.loadtest.prompts import PromptText
from backend.loadtest.workload import WorkloadSpec, read_workload

LENGTHS = st.one_of(
    st.builds(Lengths.fixed, st.integers(1, 3_000)),
    st.builds(
        lambda a, b: Lengths("uniform", min(a, b), max(a, b)),
        st.integers(1, 3_000),
        st.integers(1, 3_000),
    ),
    st.builds(Lengths.lognormal, st.floats(1, 3_000), st.floats(0, 2)),
)
PREFIXES = st.builds(PrefixTemplates, st.integers(0, 50), st.floats(0, 3), LENGTHS)
BURSTS = st.one_of(
    st.none(),
    st.builds(GammaGaps, st.floats(0.1, 3)),
    st.builds(OnOff, st.floats(1, 3), st.just(10.0), st.just(20.0)),
)


@st.composite
def specs(draw: st.DrawFn) -> WorkloadSpec:
    bursts: Bursts | None = draw(BURSTS)
    return WorkloadSpec(
        format="bursts" if bursts else "poisson",
        bursts=bursts,
        # Whole cycles, and enough that something is sent.
        duration_s=draw(st.sampled_from((30.0, 60.0, 120.0))),
        rate_rps=draw(st.floats(2, 20)),
        seed=draw(st.integers(0, 2**64)),
        tenants=draw(st.integers(1, 60)),
        batch_share=draw(st.floats(0, 1)),
        suffix_lengths=draw(LENGTHS),
        output_lengths=draw(LENGTHS),
        prefixes=draw(PREFIXES),
        max_input_tokens=draw(st.none() | st.integers(1, 5_000)),
    )


@given(spec=specs())
@settings(max_examples=60, deadline=None)
def test_a_schedule_is_sorted_within_its_bounds_and_drawn_again_the_same(
    spec: WorkloadSpec,
) -> None:
    workload = read_workload(spec)
    times = [request.send_at_ms for request in workload.requests]
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] < workload.duration_ms
    longest = spec.max_input_tokens or 32_768
    for number, request in enumerate(workload.requests):
        assert request.number == number
        assert 1 <= request.prompt_tokens <= longest
        assert all(segment.tokens >= 1 for segment in request.segments)
        assert request.output_tokens >= 1
        assert int(request.tenant[1:]) < (spec.tenants or 0)
    assert 0 <= workload.ideal_hit_rate < 1
    assert read_workload(spec) == workload


@given(spec=specs())
@settings(max_examples=60, deadline=None)
def test_the_rate_is_kept_within_five_standard_errors(spec: WorkloadSpec) -> None:
    expected = (spec.rate_rps or 0) * (spec.duration_s or 0)
    # The count of gaps of a coefficient of variation has about cv² times Poisson's variance, and
    # a little more that does not shrink with the run.
    cv = spec.bursts.cv if isinstance(spec.bursts, GammaGaps) else 1.0
    error = math.sqrt(cv**2 * expected + (1 + cv**4))
    assert abs(len(read_workload(spec).requests) - expected) <= 5 * error


SEGMENTS = st.lists(
    st.builds(Segment, st.sampled_from("abcd"), st.integers(1, 6)), min_size=1, max_size=5
)


def planned(prompts: list[list[Segment]]) -> list[PlannedRequest]:
    return [
        PlannedRequest(number, 0.0, "t00", "interactive", tuple(segments), 1)
        for number, segments in enumerate(prompts)
    ]


@given(prompts=st.lists(SEGMENTS, max_size=12))
def test_the_ideal_is_what_comparing_every_pair_of_prompts_finds(
    prompts: list[list[Segment]],
) -> None:
    """Against the token ids themselves, with no tree: the longest common beginning with any
    earlier prompt."""
    requests = planned(prompts)
    tokens = [_words(request) for request in requests]
    found = sum(
        min(max((_common(mine, other) for other in tokens[:at]), default=0), len(mine) - 1)
        for at, mine in enumerate(tokens)
    )
    total = sum(len(mine) for mine in tokens)
    assert ideal_hit_rate(requests) == (found / total if total else 0)


@given(prompts=st.lists(SEGMENTS, min_size=1, max_size=8), shared=st.integers(1, 40))
def test_more_sharing_never_finds_less(prompts: list[list[Segment]], shared: int) -> None:
    """The same lead before every prompt, or another one before each."""
    alike = [[Segment("lead", shared), *segments] for segments in prompts]
    apart = [[Segment(f"lead-{n}", shared), *segments] for n, segments in enumerate(prompts)]
    assert 0 == ideal_hit_rate(planned(apart)) <= ideal_hit_rate(planned(alike)) < 1


@given(prompt=SEGMENTS, salt=st.text(max_size=5))
def test_prompts_have_their_tokens_in_both_forms(prompt: list[Segment], salt: str) -> None:
    request, made = planned([prompt])[0], PromptText(salt)
    assert len(made.token_ids(request)) == 4 * request.prompt_tokens
    assert len(made.text(request).split(" ")) == request.prompt_tokens + 1


def _words(request: PlannedRequest) -> list[bytes]:
    ids = PromptText().token_ids(request)
    return [ids[at : at + 4] for at in range(0, len(ids), 4)]


def _common(one: list[bytes], other: list[bytes]) -> int:
    pairs = zip(one, other, strict=False)
    return next(
        (at for at, (mine, theirs) in enumerate(pairs) if mine != theirs),
        min(len(one), len(other)),
    )
