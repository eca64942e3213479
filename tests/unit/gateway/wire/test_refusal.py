import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.wire.refusal import refusal

SENT = {"messages", "temperature", "top_p", "seed", "stop", "logit_bias", "response_format",
        "regex", "tools", "tool_choice", "top_logprobs", "logprobs"}  # fmt: skip
"""What the tenant's request carried."""

SGLANG = [
    # Measured, or from the source of 0.5.23.
    (
        "temperature must be a non-negative finite number, got -1.0.",
        "invalid_value",
        "temperature",
        "the value of temperature",
    ),
    ("top_p must be in (0, 1], got 7.", "invalid_value", "top_p", "the value of top_p"),
    ("sampling_seed must be an integer, got str.", "invalid_value", "seed", "the value of seed"),
    (
        "logit_bias must has keys in [0, 49151], got 60000.",
        "invalid_value",
        "logit_bias",
        "the value of logit_bias",
    ),
    ("at most 16 stop strings are allowed, got 40", "invalid_value", "stop", "the value of stop"),
    (
        "The input (12004 tokens) is longer than the model's context length (2048 tokens).",
        "context_length_exceeded",
        "messages",
        "do not fit",
    ),
    (
        "Input length (1616 tokens) exceeds the maximum allowed length (994 tokens).",
        "context_length_exceeded",
        "messages",
        "do not fit",
    ),
    (
        "max_completion_tokens is too large: 5000.This model supports at most 2048 tokens.",
        "context_length_exceeded",
        "messages",
        "do not fit",
    ),
    (
        "Failed to compile json_schema grammar: Unknown type at $.properties.secret",
        "invalid_value",
        "response_format",
        "grammar",
    ),
    ("Failed to compile regex grammar: unbalanced (", "invalid_value", "regex", "grammar"),
    (
        "Only one of json_schema, regex, ebnf, or structural_tag can be set.",
        "invalid_value",
        None,
        "only one of",
    ),
    (
        "Tools cannot be empty if tool choice is set to required.",
        "invalid_value",
        "tool_choice",
        "tools",
    ),
    ("top_logprobs must be at most 20", "invalid_value", "top_logprobs", "log probabilities"),
    ("image input is not supported for this model", "invalid_value", "messages", "media"),
    (
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "invalid_value",
        "messages",
        "template",
    ),
    (
        "logit_bias is not supported by this worker.",
        "unsupported_parameter",
        "logit_bias",
        "is not supported",
    ),
    *(
        (f"{field} is not supported by this worker.", "unsupported_parameter", field, "engine")
        for field in ("tools", "logprobs", "regex", "response_format")
    ),
    ("It went wrong.", "invalid_value", None, "as invalid"),
    ("temperature and top_p both are odd", "invalid_value", None, "as invalid"),
]


@pytest.mark.parametrize(("message", "code", "param", "said"), SGLANG)
def test_a_refusal_names_what_is_wrong(
    message: str, code: str, param: str | None, said: str
) -> None:
    """The kind in a sentence of our own, and the field where the engine names one."""
    error = refusal(400, message, SENT)
    assert (error.status, error.code, error.param) == (400, code, param)
    assert said in error.message


def test_only_a_field_that_was_sent_is_named() -> None:
    """What the gateway set itself, or the engine has as its own, is nothing a tenant can mend."""
    assert refusal(400, "priority must be a signed 64-bit integer", SENT).param is None
    assert refusal(400, "top_k must be -1 or at least 1", SENT).param is None
    assert refusal(400, "Failed to compile regex grammar: x", {"messages"}).param is None
    assert refusal(400, "The prompt is too long", {"prompt"}).param == "prompt"


@pytest.mark.parametrize("status", [429, 503])
def test_a_full_engine_is_ours(status: int) -> None:
    """S27: 503 with a wait, whatever it says."""
    error = refusal(status, "The request queue is full.", SENT)
    assert (error.status, error.code) == (503, "no_capacity")
    assert error.retry_after_ms


@given(
    status=st.sampled_from([400, 413, 422, 429, 503]),
    before=st.sampled_from([message for message, *_ in SGLANG]),
    words=st.text(st.characters(min_codepoint=33), min_size=8),
)
def test_no_word_of_the_engines_reaches_a_tenant(status: int, before: str, words: str) -> None:
    """INV-12: neither a path nor the input that the engine quotes."""
    secret = f"/srv/app/{words}"
    error = refusal(status, f"{before} {secret} [input={words}]", SENT)
    assert secret not in error.message
    assert "/" not in error.message
    assert error.param is None or error.param in SENT


def test_a_kind_is_named_only_where_the_request_has_it() -> None:
    """A message that mentions tools says nothing of a request without any."""
    words = "Input should be 'system', 'assistant', 'tool', 'function' or 'developer': role"
    found = refusal(400, words, {"messages", "temperature"})
    assert (found.param, "tools" in found.message) == ("messages", False)
