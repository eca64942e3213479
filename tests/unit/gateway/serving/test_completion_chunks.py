"""Chunks of an engine that no reader of OpenAI's understands, and ends that are failures: a stream
and a whole answer fail alike."""

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, error_of, text_of

from billing.domain.usage_record import Outcome

FORMS = pytest.mark.parametrize("stream", [True, False])


@FORMS
@pytest.mark.parametrize("name", sorted(events.ODD_CHUNKS))
async def test_an_odd_chunk_is_the_workers_failure(name: str, stream: bool) -> None:
    """INV-14: an explicit error, unbilled; none of its bytes reach the tenant."""
    odd = events.ODD_CHUNKS[name]
    gateway = MemoryGateway(
        [events.role(), events.content("ab"), odd, events.finish(), events.usage(5, 2)]
    )
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert not record.billable
    error = error_of(client)
    assert (error["code"], error["message"]) == ("worker_failed", "the worker reported an error")
    assert client.status == (200 if stream else 502)
    assert b"[DONE]" not in client.sent
    if stream:
        assert text_of(client) == "ab"


@FORMS
async def test_an_odd_chunk_at_the_beginning_is_tried_elsewhere(stream: bool) -> None:
    """Nothing has gone out yet: another worker serves."""
    odd = events.ODD_CHUNKS["content in parts"]
    gateway = MemoryGateway([odd], events.answer(["a"]), workers=2)
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert client.status == 200
    assert [each.outcome for each in record.attempts] == [Outcome.WORKER_FAILED, Outcome.COMPLETED]


@FORMS
@pytest.mark.parametrize("reason", ["abort", "error"])
async def test_an_end_that_is_a_failure_is_no_answer(reason: str, stream: bool) -> None:
    """INV-14: whatever text came before, unbilled, and its finish reason never goes out."""
    gateway = MemoryGateway(
        [events.role(), events.content("ab"), events.finish(reason), events.usage(5, 1)]
    )
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.WORKER_FAILED)
    assert (record.output_tokens, record.billable, record.usage_flags) == (1, False, ())
    assert error_of(client)["code"] == "worker_failed"
    assert b"[DONE]" not in client.sent
    assert f'"finish_reason":"{reason}"'.encode() not in client.sent


@FORMS
async def test_an_end_in_an_engines_own_word_is_an_answer(stream: bool) -> None:
    """It passes as it came, and the record is flagged."""
    gateway = MemoryGateway([events.content("ab"), events.finish("eos"), events.usage(5, 1)])
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.billable, record.usage_flags) == (True, ("finish_unknown",))
    assert b'"finish_reason":"eos"' in client.sent


SHORT = [events.finish("length"), events.usage(5, 1)]
"""An end that is held back, found to be too short, and tried elsewhere."""


@FORMS
async def test_how_one_attempt_ended_says_nothing_of_the_next(stream: bool) -> None:
    """A stream that ends without a finish has failed, and one that finishes is an answer, whatever
    an earlier one said."""
    broken = MemoryGateway([events.finish("length"), events.error(500)], [], workers=2)
    client = await broken.post(stream=stream)
    record = broken.assert_one_of_each(Outcome.WORKER_FAILED)
    assert (record.finish_reason, len(record.attempts), client.status) == (None, 2, 502)
    whole = MemoryGateway(SHORT, events.answer(["a"]), workers=2)
    client = await whole.post(stream=stream)
    record = whole.assert_one_of_each(Outcome.COMPLETED)
    assert (record.finish_reason, record.usage_flags, client.status) == ("stop", (), 200)
