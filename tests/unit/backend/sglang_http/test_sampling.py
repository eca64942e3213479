"""Sampling parameters: ranges, and nothing asked for that an engine cannot do."""

from typing import Any

import pytest

from backend.sglang_http.refusals import Refused
from backend.sglang_http.sampling import read_sampling, refuse_unsupported
from backend.sglang_http.wire import ChatBody, CompletionBody, decode


def body(text: str) -> ChatBody:
    """A chat body with these fields."""
    return decode(b'{"messages":[],' + text.encode() + b"}", ChatBody)


@pytest.mark.parametrize(
    "field",
    [
        '"seed":1',
        '"min_tokens":1',
        '"top_k":5',
        '"logit_bias":{"5":1}',
        '"regex":"a"',
        '"ebnf":"root ::= x"',
        '"response_format":{"type":"json_object"}',
        '"tools":[{}]',
        '"input_ids":[1]',
        '"logprobs":true',
        '"chat_template_kwargs":{"a":1}',
        '"return_hidden_states":true',
        '"return_hidden_states":"last"',
        '"lora_path":"x"',
        '"skip_special_tokens":false',
        '"ignore_eos":true',
        '"images_config":{"a":1}',
        '"watermark":{"key":1}',
        '"return_routed_experts":true',
        '"return_sampling_mask":true',
        '"return_cached_tokens_details":true',
        '"task":"title"',
    ],
)
def test_unsupported(field: str) -> None:
    """A field that asks for something is refused by name where the engine does not honour it."""
    with pytest.raises(Refused, match=field.split('"')[1]):
        refuse_unsupported(body(field), frozenset())


@pytest.mark.parametrize(
    "field",
    ['"seed":null', '"top_k":-1', '"n":1', '"lora_path":null', '"tools":[]', '"top_p":1.0'],
)
def test_neutral(field: str) -> None:
    """A field that asks for nothing is no reason to refuse."""
    refuse_unsupported(body(field), frozenset())


def test_nothing_that_is_asked_for_is_dropped() -> None:
    """0 log probabilities are more than none, a tool that must be called, effort in reasoning."""
    for field in ('"tool_choice":"required"', '"reasoning_effort":"low"'):
        with pytest.raises(Refused, match="is not supported by this worker"):
            refuse_unsupported(body(field), frozenset())
    refuse_unsupported(body('"tool_choice":"auto"'), frozenset())
    text = decode(b'{"prompt":"x","logprobs":0}', CompletionBody)
    with pytest.raises(Refused, match="logprobs is not supported"):
        refuse_unsupported(text, frozenset())


def test_honoured() -> None:
    """What the engine names passes."""
    refuse_unsupported(
        body('"seed":1,"response_format":{"type":"json_object"}'),
        frozenset({"seed", "json_schema"}),
    )


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ('"temperature":-1', "temperature must be a non-negative finite number, got -1.0."),
        ('"top_p":0', "top_p must be in (0, 1], got 0.0."),
        ('"top_p":1.1', "top_p must be in (0, 1], got 1.1."),
        ('"top_k":0', "top_k must be -1 (disable) or at least 1, got 0."),
        ('"frequency_penalty":3', "frequency_penalty must be in [-2, 2], got 3.0."),
        ('"repetition_penalty":0', "repetition_penalty must be in (0, 2], got 0.0."),
        ('"logit_bias":{"x":1}', "logit_bias has keys that are not token ids."),
    ],
)
def test_ranges(field: str, message: str) -> None:
    """Values out of range are refused with the range."""
    with pytest.raises(Refused) as refused:
        read_sampling(body(field), 8, None, {})
    assert refused.value.message == message


def test_values_and_defaults() -> None:
    """Given values win over the engine's defaults; stop strings are a list."""
    defaults = {"temperature": 0.2, "top_p": 0.9}
    given = read_sampling(body('"temperature":0,"stop":"x","top_k":-1,"seed":4'), 8, 2, defaults)
    assert (given.temperature, given.top_p, given.top_k) == (0, 0.9, None)
    assert (given.stop, given.seed, given.max_tokens, given.top_logprobs) == (("x",), 4, 8, 2)
    schema: Any = (
        '"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"null"}}}'
    )
    assert read_sampling(body(schema), 8, None, {}).json_schema == '{"type":"null"}'
