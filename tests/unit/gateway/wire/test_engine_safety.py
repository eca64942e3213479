import json

import pytest

from gateway.errors import InvalidRequest, UnsupportedParameter
from gateway.wire.engine_safety import GRAMMAR_BYTES_MAX, TOOLS_BYTES_MAX
from gateway.wire.request import CompletionRequest, read_request

CHAT = {"model": "m", "messages": [{"role": "user", "content": "a"}]}


def read(**fields: object) -> CompletionRequest:
    """A chat request with these fields."""
    return read_request("chat", json.dumps({**CHAT, **fields}).encode(), {})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("top_k", 2**31), ("min_tokens", 2**31), ("stop_token_ids", [2**31]), ("max_tokens", 2**31),
        ("logit_bias", {"5": 1e38}), ("logit_bias", {"5": -101}), ("repetition_penalty", 1e-40),
        ("seed", 2**63), ("temperature", -1e-300),
    ],
)  # fmt: skip
def test_a_number_that_an_engine_cannot_hold_is_refused(field: str, value: object) -> None:
    """One more than 32 bits ends SGLang's scheduler, for all tenants."""
    with pytest.raises(InvalidRequest) as caught:
        read(**{field: value})
    assert (caught.value.param or "").startswith(field)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("top_k", 2**31 - 1), ("min_tokens", 2**31 - 1), ("stop_token_ids", [2**31 - 1]),
        ("logit_bias", {"5": 100}), ("repetition_penalty", 2), ("seed", -(2**63)),
    ],
)  # fmt: skip
def test_the_largest_that_it_can_is_not(field: str, value: object) -> None:
    """Exactly at the edge."""
    assert field in read(**{field: value}).forward


def test_stop_tokens_and_a_minimum_are_not_combined() -> None:
    """The engine masks the stop tokens until the minimum is reached, and dies of one that its
    vocabulary does not have."""
    with pytest.raises(UnsupportedParameter):
        read(stop_token_ids=[5], min_tokens=1)
    read(stop_token_ids=[5], min_tokens=0)
    read(stop_token_ids=[], min_tokens=4)


def a_schema(size: int) -> dict[str, object]:
    """A response format of about so many bytes."""
    schema = {"type": "string", "enum": ["x" * size]}
    return {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}


@pytest.mark.parametrize(
    ("field", "small", "large"),
    [
        ("regex", "a" * 60_000, "a" * GRAMMAR_BYTES_MAX),
        ("ebnf", "a" * 60_000, "a" * GRAMMAR_BYTES_MAX),
        ("response_format", a_schema(60_000), a_schema(GRAMMAR_BYTES_MAX)),
        (
            "tools",
            [{"type": "function", "function": {"name": "f", "description": "d" * 200_000}}],
            [{"type": "function", "function": {"name": "f", "description": "d" * TOOLS_BYTES_MAX}}],
        ),
    ],
)
def test_what_an_engine_compiles_is_bounded(field: str, small: object, large: object) -> None:
    """A large one holds up everybody's tokens, and nobody pays for it."""
    read(**{field: small})
    with pytest.raises(InvalidRequest) as caught:
        read(**{field: large})
    assert caught.value.param == field


def test_what_is_null_is_not_set() -> None:
    """OpenAI's SDKs send nulls; SGLang refuses many of them."""
    request = read(frequency_penalty=None, logprobs=None, parallel_tool_calls=None, top_k=5)
    assert set(request.forward) == {"messages", "top_k"}
