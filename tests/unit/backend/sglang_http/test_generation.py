"""The bridge between an engine and its reader."""

import asyncio

import pytest

from backend.sglang_http.generation import Finish, FinishReason, Generation, Usage
from backend.sglang_http.refusals import EngineFailure, queue_full


async def test_unread_text_is_merged() -> None:
    """A reader that lags gets everything at once, counted."""
    generation = Generation("r", 5)
    for word in ("one", " two", " three"):
        generation.push(word, 1)
    delta = await generation.take()
    assert (delta.text, delta.tokens, delta.usage) == ("one two three", 3, Usage(5, 3, None))
    assert delta.finish is None


async def test_waits_for_text() -> None:
    """A reader sleeps until there is text, and held-back tokens are counted with it."""
    generation = Generation("r", 5)
    taking = asyncio.create_task(generation.take())
    generation.push("", 1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not taking.done()
    generation.push("text", 1)
    assert (await taking).tokens == 2


async def test_first_end_wins() -> None:
    """After the end nothing is added and no other end counts."""
    generation = Generation("r", 5)
    generation.push("a", 1)
    generation.finish(Finish(FinishReason.ABORT, Usage(5, 1, None)))
    generation.push("b", 1)
    generation.finish(Finish(FinishReason.STOP, Usage(5, 2, None)))
    generation.fail(queue_full())
    delta = await generation.take()
    assert delta.text == "a"
    assert delta.finish is not None
    assert delta.finish.reason is FinishReason.ABORT
    assert delta.usage.completion_tokens == 1


async def test_failure_after_text() -> None:
    """What was generated before the engine broke is read first."""
    generation = Generation("r", 5)
    generation.push("a", 1)
    generation.fail(queue_full())
    assert (await generation.take()).text == "a"
    with pytest.raises(EngineFailure):
        await generation.take()
