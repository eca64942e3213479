import json

import engine_events as events
import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from gateway.wire.assembly import ChoiceAssembly
from gateway.wire.chunk import Delta, EngineChoice
from gateway.wire.shown import GENERATED_FIELDS, ShownChoice, ShownDelta
from gateway.wire.upstream import ChunkRewriter, read_error, read_event
from gateway.wire.usage import Usage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)

GENERATED: dict[str, object] = {
    "content": "a",
    "reasoning_content": "b",
    "reasoning": "c",
    "refusal": "d",
    "tool_calls": [{"index": 0, "id": "c0", "function": {"name": "f", "arguments": "{"}}],
    "function_call": {"name": "f", "arguments": "{"},
    "audio": {"data": "AAAA"},
    "annotations": [{"type": "url_citation"}],
}


def test_a_role_chunk_is_no_token() -> None:
    """SGLang's first chunk carries a role and an empty text."""
    event = read_event(events.role())
    assert (event.has_choice, event.has_content) == (True, False)


@pytest.mark.parametrize(
    "data",
    [
        events.content("hi"),
        events.chunk(text="hi"),
        events.chunk(delta={"reasoning_content": "hm"}),
        events.chunk(delta={"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}),
    ],
)
def test_text_reasoning_and_tool_calls_are_content(data: bytes) -> None:
    """Each means that at least one token was generated."""
    assert read_event(data).has_content


@pytest.mark.parametrize("delta", [{"tool_calls": []}, {"tool_calls": None}, {"content": None}, {}])
def test_empty_deltas_are_no_content(delta: dict[str, object]) -> None:
    """Nothing was generated."""
    assert not read_event(events.chunk(delta=delta)).has_content


def test_the_finish_and_the_usage_are_read() -> None:
    """S26: they come in chunks of their own, the usage after the finish."""
    assert read_event(events.finish("length")).finish_reason == "length"
    last = read_event(events.usage(37, 8, cached=36, reasoning=3))
    assert (last.has_choice, last.finish_reason) == (False, None)
    assert last.usage == Usage(
        prompt_tokens=37, output_tokens=8, cached_tokens=36, reasoning_tokens=3
    )


def test_an_empty_finish_reason_is_none() -> None:
    """INV-14: only a reason ends a stream."""
    assert read_event(events.finish("")).finish_reason is None


def test_openais_usage_is_read_like_sglangs() -> None:
    """S13: reasoning tokens nested or at the top, cached tokens within the prompt."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    read = read_event(events.chunk(usage=usage)).usage
    assert read == Usage(prompt_tokens=10, output_tokens=7, cached_tokens=4, reasoning_tokens=5)


def test_zero_is_zero_and_absent_is_absent() -> None:
    """S09, V41, V42, M25: what an engine did not say is None, never 0."""
    zero = read_event(events.chunk(usage=events.counts(0, 0, cached=0))).usage
    assert zero == Usage(0, 0, 0, reasoning_tokens=0)
    said = read_event(events.chunk(usage={"prompt_tokens": 3})).usage
    assert said == Usage(prompt_tokens=3, output_tokens=None, cached_tokens=None)
    assert read_event(events.content("x")).usage is None
    assert read_event(b'{"choices":[],"usage":null}').usage is None


def test_counts_out_of_range_are_absent_and_marked() -> None:
    """S10: never a negative count, and none that the records cannot hold; nor the nearest that
    they can, which nobody counted."""
    low = read_event(events.chunk(usage=events.counts(-3, -1, cached=-2))).usage
    assert low == Usage(reasoning_tokens=0, out_of_range=True)
    high = read_event(events.chunk(usage=events.counts(2**70, 5))).usage
    assert high == Usage(output_tokens=5, reasoning_tokens=0, out_of_range=True)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (events.error(503), 503),
        (b'{"object":"error","message":"too long","type":"x","code":400}', 400),
        (b'{"error":"unknown field"}', 500),
        (b'{"error":{"message":"m","code":"429"}}', 429),
        (b'{"error":{"message":"m","code":7}}', 500),
        (b'{"error":{"message":"m","type":503,"code":503}}', 503),
    ],
)
def test_an_error_is_known_in_every_shape(data: bytes, status: int) -> None:
    """D07: OpenAI's object, SGLang's flat one, a text; none of it is content."""
    event = read_event(data)
    assert event.error is not None
    assert event.error.status == status
    assert (event.has_content, event.has_choice) == (False, False)


def test_a_null_error_is_none() -> None:
    """Some engines send the field with every chunk."""
    data = json.loads(events.content("x")) | {"error": None}
    assert read_event(json.dumps(data).encode()).error is None


@pytest.mark.parametrize(
    "data", [b"", b"Internal Server Error", b'{"choices":[{"del', b"[" * 20_000, b'{"choices":7}']
)
def test_what_is_no_chunk_is_an_error(data: bytes) -> None:
    """INV-14, S16: neither dropped silently nor passed to an SDK that would break on it."""
    event = read_event(data)
    assert event.error is not None
    assert event.error.status == 500


@pytest.mark.parametrize("name", sorted(events.ODD_CHUNKS))
def test_a_chunk_that_breaks_a_reader_is_an_error(name: str) -> None:
    """INV-14: the types of what is shown are OpenAI's; anything else would pass into an SDK that
    breaks on it, and be billed."""
    event = read_event(events.ODD_CHUNKS[name])
    assert event.error is not None
    assert event.error.status == 500
    assert not event.has_content


def test_whatever_is_shown_has_a_type() -> None:
    """A field that is shown and not read strictly would pass on whatever an engine says."""
    assert set(Delta.__struct_fields__) == set(ShownDelta.__struct_fields__)
    shown = set(ShownChoice.__struct_fields__) - {"index"}  # the gateway's own
    assert shown <= set(EngineChoice.__struct_fields__)
    assert set(GENERATED) == GENERATED_FIELDS


@given(piece=JSON, field=st.sampled_from(("text", "logprobs", "matched_stop", *GENERATED)))
def test_what_the_stream_passes_on_the_whole_answer_takes(piece: object, field: str) -> None:
    """Both forms of an answer fail on the same chunks."""
    made = {"delta": {field: piece}} if field in GENERATED else {field: piece}
    data = json.dumps({"choices": [made]}).encode()
    if read_event(data).error is None:
        rewriter().rewrite(data, 0)
        assembly = ChoiceAssembly(0, chat=True)
        assembly.add(data)
        msgspec.json.encode(assembly.choice())


def test_chunks_without_choices_are_neither_content_nor_errors() -> None:
    """Null choices, or none: nothing to pass on."""
    for data in (b'{"choices":null}', b'{"choices":[]}', b"{}"):
        event = read_event(data)
        assert (event.has_choice, event.has_content, event.error) == (False, False, None)


@given(body=JSON, status=st.sampled_from([400, 500, 503]))
def test_any_error_body_is_read(body: object, status: int) -> None:
    """Whatever an engine answers, reading it never fails."""
    assert 400 <= read_error(json.dumps(body).encode(), status).status <= 599


def test_an_error_body_that_is_no_json_keeps_its_status() -> None:
    """A proxy's page between us and the engine."""
    assert read_error(b"<html>", 502).status == 502


def rewriter(*, keep_usage: bool = False) -> ChunkRewriter:
    return ChunkRewriter(
        response_id="chatcmpl-1",
        model="asked",
        created=7,
        chunk_object="chat.completion.chunk",
        keep_usage=keep_usage,
    )


def rewritten(data: bytes, *, keep_usage: bool = False) -> dict[str, object]:
    changed = rewriter(keep_usage=keep_usage).rewrite(data, 0, read_event(data).usage)
    chunk: dict[str, object] = json.loads(changed)
    return chunk


def test_a_rewritten_chunk_is_the_gateways() -> None:
    """Id, model and time are ours, usage is hidden, the choices are the engine's."""
    data = events.content('a"\u2028b', usage=events.counts(1, 2))
    original = json.loads(data)
    assert rewritten(data) == {
        **{name: value for name, value in original.items() if name != "usage"},
        "id": "chatcmpl-1",
        "model": "asked",
        "created": 7,
    }


def test_what_is_generated_passes() -> None:
    """Each of OpenAI's and SGLang's fields, with the role, logprobs and what ended it; null is
    null, and what was not there is not made up."""
    logprobs = {"content": [{"token": "a", "logprob": -0.1}]}
    data = events.chunk(
        delta={"role": None, **GENERATED}, finish="stop", logprobs=logprobs, matched_stop=2
    )
    assert rewritten(data)["choices"] == json.loads(data)["choices"]
    for bare in ({"delta": None}, {"text": "x"}, {"delta": {"content": None}}):
        assert rewritten(json.dumps({"choices": [bare]}).encode())["choices"] == [
            {"index": 0, **bare}
        ]
    for name, value in GENERATED.items():
        assert read_event(events.chunk(delta={name: value})).has_content


@pytest.mark.parametrize("keep_usage", [True, False])
def test_nothing_of_a_provider_passes(keep_usage: bool) -> None:
    """INV-12: whoever serves it, what a provider says beside the answer (who it is, whose account,
    what it cost the operator) is not the tenant's, wherever it says so."""
    odd: dict[str, object] = {"provider": "Vendor", "org": "Vendor", "x_request": ["Vendor"]}
    usage = {**events.counts(3, 2, cached=1), **odd, "cost": 0.0123, "cost_details": {"cost": 1}}
    chunk = json.loads(
        events.chunk(delta={"content": "a", **odd}, usage=usage, native_finish_reason="Vendor")
    )
    chunk["choices"][0].update(odd, usage=usage)
    chunk |= {**odd, "system_fingerprint": "Vendor", "x_groq": {"id": "Vendor"}, "sglext": odd}
    chunk["id"] = chunk["model"] = chunk["object"] = "Vendor"
    shown = json.dumps(rewritten(json.dumps(chunk).encode(), keep_usage=keep_usage))
    assert '"content": "a"' in shown
    assert "Vendor" not in shown
    assert "cost" not in shown
    assert not read_event(events.chunk(delta=odd)).has_content


def test_values_keep_the_engines_bytes() -> None:
    """A number or an escape that a decoder would alter goes through as it came."""
    data = b'{"choices":[{"index":0,"delta":{"content":"\\u00e9"},"logprobs":-0.10}]}'
    changed = rewriter().rewrite(data, 0)
    assert b'"content":"\\u00e9"' in changed
    assert b'"logprobs":-0.10' in changed


def test_choices_are_renumbered() -> None:
    """Each upstream stream is one choice, whatever index it says or leaves out; the client sees its
    own."""
    for data in (events.content("x"), b'{"choices":[{"index":"7"}]}', b'{"choices":[{}]}'):
        for index in (0, 3):
            changed = json.loads(rewriter().rewrite(data, index))
            assert [choice["index"] for choice in changed["choices"]] == [index]


def test_usage_stays_where_it_was_asked_for() -> None:
    """`continuous_usage_stats` of a request with one choice: the counts, as understood; nothing
    where an engine says them in part, or not so that they can be."""
    said = events.counts(5, 2, cached=9, reasoning=3)
    usage = rewritten(events.content("x", usage=said), keep_usage=True)["usage"]
    assert usage == {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    odd_ones: list[dict[str, object]] = [{"a": 1}, {"prompt_tokens": 1}, events.counts(-1, 3)]
    for odd in odd_ones:
        assert "usage" not in rewritten(events.content("x", usage=odd), keep_usage=True)


def test_the_usage_chunk_has_no_choices() -> None:
    """S02: OpenAI's form of the last chunk."""
    chunk = json.loads(rewriter().usage_chunk({"total_tokens": 3}))
    assert chunk == {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 7,
        "model": "asked",
        "choices": [],
        "usage": {"total_tokens": 3},
    }


@given(text=st.text())
def test_no_rewritten_chunk_breaks_its_event(text: str) -> None:
    """INV-12: no line end in the data, whatever was generated."""
    data = msgspec.json.encode({"choices": [{"index": 0, "delta": {"content": text}}]})
    changed = rewriter().rewrite(data, 1)
    assert b"\n" not in changed
    assert b"\r" not in changed
    assert json.loads(changed)["choices"][0]["delta"]["content"] == text


def test_a_chunk_of_several_lines_becomes_one() -> None:
    """S16: an event whose data came in several `data` lines, broken inside a value that passes."""
    delta: dict[str, object] = {
        "tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "a\nb"}}]
    }
    data = json.dumps(json.loads(events.chunk(delta=delta)), indent=1).encode()
    assert b"\n" not in rewriter().rewrite(data, 0)
    assert rewritten(data)["choices"] == json.loads(data)["choices"]
