"""What an engine says bit by bit, too early, or less than before: what is recorded of it."""

import json

import engine_events as events
import pytest
from hosted_examples import a_provider
from memory_gateway import MemoryGateway
from tenant_examples import a_worker

from billing.domain.usage_record import Outcome, UsageSource
from gateway.domain.hosted import target_of
from gateway.errors import WorkerFailed
from gateway.serving.choice import Choice
from gateway.serving.record import count
from gateway.wire.upstream import read_event

FORMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def said(**counts: object) -> bytes:
    """A chunk without a choice that says so much."""
    return json.dumps({"choices": [], "usage": counts}).encode()


def noted(*data: bytes) -> Choice:
    choice = Choice(index=0, prompt=0, body=lambda worker, attempt: ("", b""))
    choice.worker = a_worker()
    for at, each in enumerate(data):
        choice.note(read_event(each), 1_000 * at)
    return choice


@FORMS
async def test_a_later_usage_hides_no_earlier_count(stream: bool) -> None:
    """The prompt is said at the first chunk alone, the cached with it: recorded, and shown."""
    first = events.content("a", usage={"prompt_tokens": 7} | {
        "prompt_tokens_details": {"cached_tokens": 4}
    })  # fmt: skip
    gateway = MemoryGateway(
        [first, events.content("b"), events.finish(), said(completion_tokens=2)]
    )
    await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.cached_prompt_tokens, record.output_tokens) == (7, 4, 2)
    assert (record.usage_source, record.usage_flags) == (UsageSource.ENGINE_FINAL, ())


def test_a_last_word_without_the_output_is_not_final() -> None:
    """INV-6: engine_final is the count said last, after all of it; not one of a chunk before."""
    choice = noted(events.content("a", usage=events.counts(5, 1)), events.content("b"),
                   events.finish(), said(prompt_tokens=5))  # fmt: skip
    totals = count([choice], [5])
    assert (totals.prompt, totals.output, totals.source) == (5, 2, UsageSource.COUNTED)


def test_what_comes_after_a_last_word_makes_it_none() -> None:
    """An engine that says usage in chunks of their own, the first before anything came: cut short
    it is no final 0, and finished neither."""
    begun = [said(prompt_tokens=5, completion_tokens=0), events.content("a"), events.content("b")]
    for ending in ([], [events.finish()]):
        totals = count([noted(*begun, *ending)], [5])
        assert (totals.prompt, totals.output, totals.source) == (5, 2, UsageSource.COUNTED)
    totals = count([noted(*begun, events.finish(), said(completion_tokens=3))], [5])
    assert (totals.prompt, totals.output, totals.source) == (5, 3, UsageSource.ENGINE_FINAL)


def test_progress_that_is_ahead_of_the_deltas_holds() -> None:
    """Both are lower bounds: the larger one, and it says where it comes from."""
    ahead = noted(events.content("abcd", usage=events.counts(5, 4)), events.content("e"))
    assert (ahead.output_tokens, ahead.source) == (4, UsageSource.ENGINE_PROGRESS)
    behind = noted(events.content("a", usage=events.counts(5, 1)), *[events.content("b")] * 3)
    assert (behind.output_tokens, behind.source) == (4, UsageSource.COUNTED)


def test_s09_a_zero_said_with_the_last_delta_is_zero() -> None:
    """S09: nothing came after it, so nothing is put in its place."""
    choice = noted(events.content("a", usage=events.counts(5, 0)))
    assert (choice.output_tokens, choice.source) == (0, UsageSource.ENGINE_PROGRESS)


@FORMS
async def test_a_count_that_falls_is_flagged(stream: bool) -> None:
    """The last one holds, and whoever runs the engine sees that it goes back."""
    script = [events.content("ab", usage=events.counts(5, 3)), events.finish(), events.usage(5, 2)]
    gateway = MemoryGateway(script)
    await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.output_tokens, record.usage_source) == (2, UsageSource.ENGINE_FINAL)
    assert record.usage_flags == ("usage_fell",)


@FORMS
async def test_usage_of_an_attempt_that_was_tried_elsewhere_is_that_attempts(stream: bool) -> None:
    """It says what the first engine did, which its own counters have too; the request is what the
    second one answered."""
    failing = json.dumps(
        {"error": {"message": "no memory", "code": 500}, "usage": events.counts(5, 0, cached=3)}
    ).encode()
    gateway = MemoryGateway([failing], events.answer(["a", "b"], prompt=6), workers=2)
    await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.output_tokens) == (6, 2)
    assert [
        (each.prompt_tokens, each.cached_prompt_tokens, each.output_tokens, each.usage_source)
        for each in record.attempts
    ] == [(5, 3, 0, UsageSource.ENGINE_FINAL), (6, 0, 2, UsageSource.ENGINE_FINAL)]


async def test_an_attempt_says_where_its_counts_come_from() -> None:
    """One that failed before a word knows nothing; one that was refused ran nothing, for sure."""
    gateway = MemoryGateway([WorkerFailed("gone")], [events.error(400, "no")], workers=2)
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.REFUSED)
    assert [each.usage_source for each in record.attempts] == [
        UsageSource.ESTIMATED,
        UsageSource.ENGINE_FINAL,
    ]
    assert [each.cached_prompt_tokens for each in record.attempts] == [None, None]


def test_a_provider_is_paid_by_a_final_count_alone() -> None:
    """What an answer that broke off costs us nobody knows, however much was said on the way."""
    target = target_of(a_provider(), "m")
    assert target is not None
    for last, known in ((said(completion_tokens=2), True), (said(prompt_tokens=5), False)):
        choice = noted(
            said(prompt_tokens=5, completion_tokens=0), events.content("a"), events.finish(), last
        )
        choice.worker = target
        choice.end_attempt(Outcome.COMPLETED, 0, 1)
        (attempt,) = choice.ended_attempts
        assert (attempt.provider_cost_pico is not None) is known


@FORMS
async def test_cached_tokens_that_were_never_told_are_flagged(stream: bool) -> None:
    """What was cached is in the account behind the last choice alone. Where that does not come the
    whole prompt is charged, and the row says so; where it comes and says nothing, all is known."""
    told_beside = [events.content("ab"), events.finish(usage=events.counts(5, 2))]
    closed = [*told_beside, events.usage(5, 2)]
    for script, flags in ((told_beside, ("cached_unknown",)), (closed, ())):
        gateway = MemoryGateway(script)
        await gateway.post(stream=stream)
        record = gateway.assert_one_of_each(Outcome.COMPLETED)
        assert (record.prompt_tokens, record.cached_prompt_tokens) == (5, 0)
        assert (record.usage_source, record.usage_flags) == (UsageSource.ENGINE_FINAL, flags)
