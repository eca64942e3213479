import json

import engine_events as events
import hypothesis.strategies as st
from hypothesis import given

from gateway.wire.assembly import ChoiceAssembly, usage_object, whole_answer


def assembled(*chunks: bytes, chat: bool = True, index: int = 0) -> dict[str, object]:
    assembly = ChoiceAssembly(index, chat=chat)
    for chunk in chunks:
        assembly.add(chunk)
    return assembly.choice()


@given(pieces=st.lists(st.text(max_size=4), max_size=12))
def test_the_text_is_that_of_the_stream(pieces: list[str]) -> None:
    """However the engine cut it, whole and in order."""
    chat = assembled(events.role(), *map(events.content, pieces), events.finish("stop"))
    assert chat["message"] == {
        "role": "assistant",
        "content": "".join(pieces),
        "reasoning_content": None,
        "tool_calls": None,
    }
    plain = assembled(*(events.chunk(text=piece) for piece in pieces), chat=False)
    assert plain["text"] == "".join(pieces)


def test_a_chat_choice_is_openais() -> None:
    """Index, message, finish reason; SGLang's matched stop with it."""
    choice = assembled(
        events.role(),
        events.content("hi"),
        events.chunk(delta={}, finish="stop", matched_stop=128009),
        index=2,
    )
    assert choice == {
        "index": 2,
        "message": {
            "role": "assistant",
            "content": "hi",
            "reasoning_content": None,
            "tool_calls": None,
        },
        "logprobs": None,
        "finish_reason": "stop",
        "matched_stop": 128009,
    }


def test_reasoning_is_kept_apart() -> None:
    """`reasoning_content` and `content` each grow on their own."""
    choice = assembled(
        events.chunk(delta={"reasoning_content": "a"}),
        events.chunk(delta={"reasoning_content": "b"}),
        events.content("c"),
    )
    message = choice["message"]
    assert isinstance(message, dict)
    assert (message["reasoning_content"], message["content"]) == ("ab", "c")


def tool_delta(index: int | None, **fields: object) -> bytes:
    return events.chunk(delta={"tool_calls": [{"index": index, **fields}]})


def test_tool_calls_grow_by_their_index() -> None:
    """Arguments come in pieces, interleaved; content is null where there is none."""
    choice = assembled(
        tool_delta(0, id="c0", type="function", function={"name": "f", "arguments": ""}),
        tool_delta(0, function={"arguments": '{"a"'}),
        tool_delta(1, id="c1", type="function", function={"name": "g", "arguments": "{}"}),
        tool_delta(0, function={"arguments": ":1}"}),
        events.finish("tool_calls"),
    )
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "reasoning_content": None,
        "tool_calls": [
            {
                "id": "c0",
                "type": "function",
                "function": {"name": "f", "arguments": '{"a":1}'},
            },
            {"id": "c1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }


def test_tool_calls_are_in_the_order_of_their_indices() -> None:
    """Whichever began first."""
    choice = assembled(
        tool_delta(1, id="c1", function={"name": "g", "arguments": "[]"}),
        tool_delta(0, id="c0", function={"name": "f", "arguments": "{"}),
        tool_delta(1, function={"arguments": "[]"}),
        tool_delta(0, function={"arguments": "}"}),
    )
    assert calls_of(choice) == [("c0", "f", "{}"), ("c1", "g", "[][]")]


def test_a_tool_call_without_an_index_is_one_of_its_own() -> None:
    """Engines that leave the index out send each call whole."""
    choice = assembled(
        *(tool_delta(None, id=f"c{i}", function={"name": "f", "arguments": "{}"}) for i in range(2))
    )
    assert calls_of(choice) == [("c0", "f", "{}"), ("c1", "f", "{}")]


def calls_of(choice: dict[str, object]) -> list[tuple[object, object, object]]:
    message = choice["message"]
    assert isinstance(message, dict)
    return [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message["tool_calls"]
    ]


def test_a_tool_call_was_ended_by_no_stop() -> None:
    """A stream of SGLang's names the token that ended it, its whole answer does not."""
    choice = assembled(
        tool_delta(0, id="c0", function={"name": "f", "arguments": "{}"}),
        events.chunk(delta={}, finish="tool_calls", matched_stop=2),
    )
    assert (choice["finish_reason"], choice["matched_stop"]) == ("tool_calls", None)


def test_logprobs_are_joined() -> None:
    """One list over the whole answer, as a non-streaming engine would give."""
    choice = assembled(
        events.chunk(delta={"content": "a"}, logprobs={"content": [{"token": "a"}]}),
        events.chunk(delta={"content": "b"}, logprobs={"content": [{"token": "b"}]}),
    )
    assert choice["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}


def test_chunks_without_choices_add_nothing() -> None:
    """The usage chunk, and one whose choices are null."""
    choice = assembled(events.content("a"), events.usage(1, 1), b'{"choices":null}')
    assert choice["finish_reason"] is None


COUNT = st.integers(0, 2**31)


@given(prompt=COUNT, cached=COUNT | st.none(), output=COUNT, reasoning=COUNT)
def test_usage_sums(prompt: int, cached: int | None, output: int, reasoning: int) -> None:
    """R29: the total is the sum; cached and reasoning are parts, not addends (S11)."""
    usage = usage_object(
        prompt_tokens=prompt,
        cached_tokens=cached,
        output_tokens=output,
        reasoning_tokens=reasoning,
    )
    assert usage["total_tokens"] == prompt + output
    assert usage["completion_tokens_details"] == {"reasoning_tokens": reasoning}
    details = usage["prompt_tokens_details"]
    assert details == (None if cached is None else {"cached_tokens": cached})


def test_a_whole_answer_is_openais() -> None:
    """The fields of a `chat.completion` and of a `text_completion`."""
    for chat, kind in ((True, "chat.completion"), (False, "text_completion")):
        body = json.loads(
            whole_answer(response_id="i", model="m", created=3, chat=chat, choices=[], usage={})
        )
        assert body == {
            "id": "i",
            "object": kind,
            "created": 3,
            "model": "m",
            "choices": [],
            "usage": {},
        }


def test_what_is_generated_is_kept() -> None:
    """A whole answer has what the stream had: refusals, reasoning, annotations, function calls; and
    no more than that (INV-12)."""
    assembly = ChoiceAssembly(0, chat=True)
    for delta in (
        {"refusal": "I can", "reasoning": "hm", "annotations": [{"a": 1}]},
        {"refusal": "not", "function_call": {"name": "f", "arguments": '{"x"'}},
        {"annotations": [{"b": 2}], "function_call": {"arguments": ":1}"}},
        {"provider": "Vendor", "hidden_states": [1.0]},
    ):
        assembly.add(json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode())
    message = assembly.choice()["message"]
    assert isinstance(message, dict)
    assert message.keys() & {"provider", "hidden_states"} == set()
    assert message["refusal"] == "I cannot"
    assert message["reasoning"] == "hm"
    assert message["annotations"] == [{"a": 1}, {"b": 2}]
    assert message["function_call"] == {"name": "f", "arguments": '{"x":1}'}
