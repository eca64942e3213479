import engine_events as events
import hypothesis.strategies as st
import pytest
from hypothesis import given
from memory_ports import START_MS
from tenant_examples import a_worker

from billing.domain.policy import CURRENT_POLICY
from billing.domain.usage_record import Outcome, UsageRecord, UsageSource
from gateway.domain.lease import Admitted
from gateway.domain.request_id import request_id
from gateway.serving.choice import Choice
from gateway.serving.record import client_usage, count, usage_record
from gateway.wire.upstream import read_event


def a_choice(*data: bytes, index: int = 0, prompt: int = 0) -> Choice:
    choice = Choice(index=index, prompt=prompt, body=lambda worker, attempt: ("", b""))
    choice.worker = a_worker()
    for at, each in enumerate(data):
        choice.note(read_event(each), 10_000 * (at + 1))
    return choice


def recorded(
    *choices: Choice, outcome: Outcome = Outcome.COMPLETED, arrival_us: int = 0
) -> UsageRecord:
    for choice in choices:
        choice.end_attempt(outcome, START_MS + 9, choice.index + 1)
    admitted = Admitted(
        request_id=request_id(START_MS, 7),
        tenant_id="acme",
        api_key_id="key-1",
        model="m",
        request_class="interactive",
        admitted_at_ms=START_MS,
        prompt_tokens=5,
        reserved_tokens=55,
        sequences=len(choices),
    )
    return usage_record(
        admitted,
        choices,
        outcome,
        prompt_counts=[5],
        arrival_us=arrival_us,
        ended_at_ms=START_MS + 900,
    )


STREAM = st.fixed_dictionaries(
    {
        "steps": st.lists(st.integers(1, 5), max_size=8),  # tokens of each chunk
        "progress": st.booleans(),
        "prompt": st.integers(1, 50),
        "cached": st.integers(0, 80),
        "finish": st.booleans(),
        "final": st.booleans(),
        "cut": st.integers(0, 20),
    }
)


def stream_of(drawn: dict[str, object], index: int) -> tuple[Choice, int]:
    """A choice that saw a stream up to the cut, and what the engine itself counted."""
    steps = drawn["steps"]
    assert isinstance(steps, list)
    total, data = 0, [events.role()]
    prompt, cached = int(str(drawn["prompt"])), int(str(drawn["cached"]))
    for tokens in steps:
        total += tokens
        usage = events.counts(prompt, total) if drawn["progress"] else None
        data.append(events.content("x", usage=usage))
    data += [events.finish()] * bool(drawn["finish"])
    data += [events.usage(prompt, total, cached=cached)] * bool(drawn["final"])
    whole = len(data)
    seen = data[: whole - int(str(drawn["cut"])) % (whole + 1)]
    return a_choice(*seen, index=index), total


@given(streams=st.lists(STREAM, min_size=1, max_size=4))
def test_a_count_never_exceeds_the_engines(streams: list[dict[str, object]]) -> None:
    """INV-6: equal to the token where it says engine_final, never more elsewhere."""
    made = [stream_of(drawn, index) for index, drawn in enumerate(streams)]
    choices = [choice for choice, _ in made]
    truth = sum(total for _, total in made)
    prompt = max(int(str(drawn["prompt"])) for drawn in streams)
    totals = count(choices, [min(int(str(drawn["prompt"])) for drawn in streams)])
    assert totals.output <= truth
    assert totals.prompt <= prompt
    assert 0 <= totals.cached <= totals.prompt
    assert 0 <= totals.reasoning <= totals.output
    if totals.source is UsageSource.ENGINE_FINAL:
        assert totals.output == truth


@given(streams=st.lists(STREAM, min_size=1, max_size=4), outcome=st.sampled_from(Outcome))
def test_the_clients_usage_is_the_records(
    streams: list[dict[str, object]], outcome: Outcome
) -> None:
    """What a tenant sees and what it is billed for are one count (V37)."""
    choices = [stream_of(drawn, index)[0] for index, drawn in enumerate(streams)]
    record = recorded(*choices, outcome=outcome)
    usage = client_usage(record, choices)
    assert usage["prompt_tokens"] == record.prompt_tokens
    assert usage["completion_tokens"] == record.output_tokens
    assert usage["total_tokens"] == record.prompt_tokens + record.output_tokens


@pytest.mark.parametrize(
    ("said", "counted", "has_media", "flags"),
    [
        (300, 5, False, ("prompt_over_count",)),
        (5, 5, False, ()),
        (4, 5, False, ()),
        (300, None, False, ()),
        (300, 5, True, ()),
    ],
)
def test_a_prompt_beyond_its_count_is_flagged(
    said: int, counted: int | None, has_media: bool, flags: tuple[str, ...]
) -> None:
    """INV-3, budgets: who serves it counts otherwise than admission did, and no limit covered that.
    It is recorded as said. Media are in no count."""
    choice = a_choice(events.content("a"), events.finish(), events.usage(said, 1))
    totals = count([choice], [counted], has_media=has_media)
    assert (totals.prompt, totals.flags) == (said, flags)


def test_the_source_is_that_of_the_weakest_count() -> None:
    """One counted choice makes the sum a counted one."""
    final = [events.content("a"), events.finish(), events.usage(5, 1)]
    progress = [events.content("a", usage=events.counts(5, 1))]
    for weakest, source in (
        (final, UsageSource.ENGINE_FINAL),
        (progress, UsageSource.ENGINE_PROGRESS),
        ([events.content("a")], UsageSource.COUNTED),
        ([], UsageSource.ESTIMATED),
    ):
        choices = [a_choice(*final), a_choice(*weakest, index=1)]
        assert count(choices, [5]).source is source


def test_a_choice_aborted_in_the_queue_does_not_hide_the_prompt() -> None:
    """SGLang says 0 for it; its sibling's engine counted 37, whichever comes first."""
    queued = a_choice(events.finish("abort"), events.usage(0, 0))
    ran = a_choice(events.content("a"), events.finish("abort"), events.usage(37, 4), index=1)
    for choices in ([queued, ran], [ran, queued]):
        totals = count(choices, [37])
        assert (totals.prompt, totals.output) == (37, 4)


def test_each_prompt_is_counted_once() -> None:
    """C10: two prompts of two choices each."""
    choices = [
        a_choice(events.content("a"), events.finish(), events.usage(prompt, 1, cached=prompt - 1),
                 index=index, prompt=index // 2)
        for index, prompt in enumerate((10, 10, 20, 20))
    ]  # fmt: skip
    totals = count(choices, [10, 20])
    assert (totals.prompt, totals.cached, totals.output) == (30, 28, 4)


def test_an_absent_prompt_count_is_admissions_own() -> None:
    """S05, M25: flagged, and only where the engine took the prompt up."""
    choice = a_choice(events.chunk(delta={"content": "a"}, usage={"completion_tokens": 1}))
    totals = count([choice], [5])
    assert (totals.prompt, totals.output) == (5, 1)
    assert (totals.source, totals.flags) == (UsageSource.COUNTED, ("prompt_counted",))
    assert count([choice], [None]).flags == ("prompt_unknown",)
    assert count([a_choice()], [5]).prompt == 0


def test_an_empty_answer_has_read_its_prompt() -> None:
    """It finished without a token and without usage: the prompt was used all the same."""
    assert count([a_choice(events.finish())], [5]).prompt == 5


def test_anomalies_are_flagged_and_clamped() -> None:
    """S10: cached within the prompt, reasoning within the output, nothing negative."""
    odd = a_choice(events.finish(), events.usage(5, 2, cached=9, reasoning=7))
    totals = count([odd], [5])
    assert (totals.cached, totals.reasoning) == (5, 2)
    assert totals.flags == ("cached_over_prompt", "reasoning_over_output")
    assert count([a_choice(events.usage(-5, -2))], [5]).flags == ("count_out_of_range",)


@pytest.mark.parametrize(
    ("reason", "flags"),
    [
        *((reason, ()) for reason in ("stop", "length", "tool_calls", "content_filter", "abort")),
        ("error", ()),
        ("eos", ("finish_unknown",)),
        ("a\nb", ("finish_unknown",)),
    ],
)
def test_a_finish_that_nobody_knows_is_flagged(reason: str, flags: tuple[str, ...]) -> None:
    """It ends the answer; whoever runs the engine sees that it has a word of its own."""
    ended = a_choice(events.content("a"), events.finish(reason), events.usage(5, 1))
    assert count([ended], [5]).flags == flags


def test_a_count_that_is_none_is_counted_here() -> None:
    """S10: neither the nonsense nor the nearest number is billed: what admission counted and the
    deltas seen are, and the row says so."""
    for prompt, output in ((-5, -2), (2**31, 2**70)):
        absurd = a_choice(events.content("a"), events.finish(), events.usage(prompt, output))
        totals = count([absurd], [5])
        assert (totals.prompt, totals.output, totals.source) == (5, 1, UsageSource.COUNTED)
        assert totals.flags == ("count_out_of_range", "prompt_counted")


def test_a_record_tells_times_and_place() -> None:
    """TTFT from arrival, TPOT over the tokens after the first, the longest gap, the worker."""
    choice = a_choice(events.content("a"), events.content("b"), events.content("c"),
                      events.finish("length"), events.usage(5, 5))  # fmt: skip
    record = recorded(choice, arrival_us=4_000)
    assert (record.ttft_ms, record.first_token_at_ms) == (6, START_MS + 6)
    assert (record.tpot_us, record.itl_max_us) == (5_000, 10_000)
    assert (record.worker_id, record.finish_reason) == ("w0", "length")
    assert (record.admitted_at_ms, record.ended_at_ms) == (START_MS, START_MS + 900)
    assert record.billing_policy == CURRENT_POLICY
    assert [(a.attempt, a.prompt_tokens, a.output_tokens) for a in record.attempts] == [(1, 5, 5)]


def test_one_token_has_no_pace() -> None:
    """DESIGN 2.3: TPOT is NULL below two tokens."""
    record = recorded(a_choice(events.content("a"), events.finish(), events.usage(5, 1)))
    assert (record.tpot_us, record.itl_max_us) == (None, None)


def test_no_token_has_no_first() -> None:
    """A refusal, or a leave during prefill."""
    record = recorded(a_choice(), outcome=Outcome.CLIENT_CANCELLED)
    assert (record.ttft_ms, record.first_token_at_ms, record.finish_reason) == (None, None, None)


def test_a_refusal_has_no_tokens() -> None:
    """DESIGN 2.3: zero and unbilled, whatever was counted."""
    record = recorded(a_choice(events.usage(5, 0)), outcome=Outcome.REFUSED)
    assert (record.prompt_tokens, record.output_tokens, record.billable) == (0, 0, False)


def test_finish_reasons_of_choices_are_joined() -> None:
    """Each kind once, in order."""
    choices = [a_choice(events.finish(reason), index=i) for i, reason in
               enumerate(("stop", "length", "stop"))]  # fmt: skip
    assert recorded(*choices).finish_reason == "length,stop"
