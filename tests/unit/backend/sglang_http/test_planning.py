"""What becomes of a maximum that cannot be had, and of what is no text."""

from dataclasses import replace

import msgspec
import pytest

from backend.sglang_http.descriptions import server_info
from backend.sglang_http.engine import Message
from backend.sglang_http.planning import plain_messages, plan_chat, plan_completion
from backend.sglang_http.refusals import Refused
from backend.sglang_http.wire import ChatBody, CompletionBody, decode
from backend.simulated.engine import SimulatedEngine
from backend.simulated.flags import SchedulerFlags
from backend.simulated.settings import SimulatedSettings


def an_engine() -> SimulatedEngine:
    """The one that was measured: a context of 2,048, a pool of 1,000."""
    flags = SchedulerFlags(context_length=2048, max_total_tokens=1000)
    return SimulatedEngine(SimulatedSettings(flags=flags))


async def planned(words: int, maximum: int | None) -> tuple[int, int]:
    """Prompt tokens and maximum of one chat."""
    body: dict[str, object] = {"messages": [{"role": "user", "content": "a " * words}]}
    if maximum is not None:
        body["max_tokens"] = maximum
    plan = await plan_chat(decode(msgspec.json.encode(body), ChatBody), an_engine())
    (sequence,) = plan.sequences
    return len(sequence.prompt.tokens), sequence.sampling.max_tokens


@pytest.mark.parametrize("maximum", [1500, None])
async def test_what_the_pool_cannot_hold_is_cut_down(maximum: int | None) -> None:
    """SGLang 0.5.23: prompt and output together two tokens below the pool, without a word."""
    prompt, limit = await planned(4, maximum)
    assert prompt + limit == 998


async def test_what_fits_is_left_alone() -> None:
    """To the token."""
    prompt, _ = await planned(4, 1)
    assert await planned(4, 998 - prompt) == (prompt, 998 - prompt)


async def test_a_prompt_beyond_the_longest_input_is_refused() -> None:
    """In SGLang's words."""
    with pytest.raises(Refused, match=r"exceeds the maximum allowed length \(994 tokens\)"):
        await planned(1200, 1)


@pytest.mark.parametrize(("words", "said"), [(8100, 8104), (300_000, 8192)])
async def test_a_hopeless_prompt_is_counted_to_four_contexts(words: int, said: int) -> None:
    """To the token below them; beyond, the refusal's count is the least that it has."""
    with pytest.raises(Refused, match=rf"^The input \({said} tokens\) is longer"):
        await planned(words, 1)


def test_the_information_tells_these_bounds() -> None:
    """Under SGLang's names, with the values that the refusals go by."""
    info = server_info(an_engine())
    assert (info["context_length"], info["max_total_num_tokens"]) == (2048, 1000)
    assert (info["max_req_input_len"], info["page_size"]) == (994, 1)
    assert (info["enable_cache_report"], info["enable_priority_scheduling"]) == (True, False)


TOOL_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "content": "6650 km", "tool_call_id": "c"},
        {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
    ],
)
def test_messages_that_are_not_text_are_refused(message: dict[str, object]) -> None:
    """What the template here cannot show the model is not left out of the prompt."""
    read = decode(msgspec.json.encode({"messages": [message]}), ChatBody)
    with pytest.raises(Refused, match="Only text in messages"):
        plain_messages(read.messages)


def test_a_developers_message_is_the_systems() -> None:
    """As SGLang has it for templates that do not know the role."""
    raw = msgspec.json.encode({"messages": [{"role": "developer", "content": "Be brief."}]})
    assert plain_messages(decode(raw, ChatBody).messages) == [Message("system", "Be brief.")]


async def test_text_completions_have_no_log_probabilities() -> None:
    """Not even where the engine has them for chats."""
    engine = an_engine()
    engine.info = replace(engine.info, honours=engine.info.honours | {"logprobs"})
    with pytest.raises(Refused, match="logprobs is not supported"):
        await plan_completion(decode(b'{"prompt":"x","logprobs":1}', CompletionBody), engine)
