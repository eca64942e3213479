import contextlib
import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.errors import InvalidRequest, UnsupportedParameter, WeirError
from gateway.wire.bodies import Endpoint
from gateway.wire.fields import PRIVILEGED_FIELDS
from gateway.wire.request import CompletionRequest, read_request

ENDPOINTS: tuple[Endpoint, ...] = ("chat", "completions")
MESSAGES = [{"role": "user", "content": "a secret prompt"}]


def chat(headers: dict[bytes, bytes] | None = None, **fields: Any) -> CompletionRequest:
    body = {"model": "m", "messages": MESSAGES, **fields}
    return read_request("chat", json.dumps(body).encode(), headers or {})


def completion(**fields: Any) -> CompletionRequest:
    body = {"model": "m", "prompt": "a secret prompt", **fields}
    return read_request("completions", json.dumps(body).encode(), {})


def refusal(body: object, endpoint: Endpoint = "chat") -> WeirError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(InvalidRequest) as caught:
        read_request(endpoint, raw, {})
    assert "secret" not in caught.value.message
    assert "secret" not in str(caught.value.param)
    return caught.value


def test_the_least_request() -> None:
    """Model and messages; everything else has OpenAI's default."""
    read = chat()
    assert (read.model, read.stream, read.include_usage, read.continuous_usage) == (
        "m", False, False, False,
    )  # fmt: skip
    assert (read.max_tokens, read.sequences, read.asked_batch) == (None, 1, False)
    assert json.loads(bytes(read.forward["messages"])) == MESSAGES


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": MESSAGES}, None),
        ({"model": "m"}, "messages"),
        ({"model": "m", "messages": []}, "messages"),
        ({"model": "m", "messages": "secret"}, "messages"),
        ({"model": "m", "messages": [{"content": "secret"}]}, "messages[0]"),
        ({"model": 7, "messages": MESSAGES}, "model"),
        ({"model": "m", "messages": MESSAGES, "max_tokens": 0}, "max_tokens"),
        ({"model": "m", "messages": MESSAGES, "max_tokens": -5}, "max_tokens"),
        ({"model": "m", "messages": MESSAGES, "max_tokens": 2**80}, "max_tokens"),
        ({"model": "m", "messages": MESSAGES, "max_tokens": "secret"}, "max_tokens"),
        ({"model": "m", "messages": MESSAGES, "max_completion_tokens": 0}, "max_completion_tokens"),
        ({"model": "m", "messages": MESSAGES, "n": 0}, "n"),
        ({"model": "m", "messages": MESSAGES, "n": 129}, "n"),
        ({"model": "m", "messages": MESSAGES, "temperature": 2.5}, "temperature"),
        ({"model": "m", "messages": MESSAGES, "top_p": 0}, "top_p"),
        ({"model": "m", "messages": MESSAGES, "stream_options": {}}, "stream_options"),
        ({"model": "m", "messages": MESSAGES, "service_tier": "secret"}, "service_tier"),
    ],
)
def test_a_bad_value_is_named_and_not_quoted(body: object, param: str | None) -> None:
    """S03: 400, the field's name in `param`, nothing of the body in the message."""
    error = refusal(body)
    assert (error.status, error.code, error.param) == (400, "invalid_value", param)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  \n",
        b"{",
        b"[]",
        b'"secret"',
        b"null",
        b'{"model":"m","messages":[{"role":"user","content":"secret\xff"}]}',
        b'{"model":"m","messages":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"model":"m","messages":[],"regex":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b"[" * 20_000,
        b'{"model":"m","messages":[{"role":"user","content":"secret"}]} trailing',
        b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}',
    ],
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    """Malformed, empty, nested without end, not UTF-8: a 400 each."""
    assert refusal(body).status == 400


@pytest.mark.parametrize("name", sorted(PRIVILEGED_FIELDS))
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_engine_controls_are_refused(endpoint: Endpoint, name: str) -> None:
    """INV-12: none is the tenant's to set, whatever its value, also where its name is escaped."""
    body = {"model": "m", "messages": MESSAGES, "prompt": "x", name: None}
    if endpoint == "chat":
        del body["prompt"]
    else:
        del body["messages"]
    assert refusal(body, endpoint).code == "unsupported_parameter"
    escaped = json.dumps(body).replace(f'"{name}"', f'"\\u{ord(name[0]):04x}{name[1:]}"')
    assert refusal(escaped.encode(), endpoint).param == name


def test_an_unknown_field_is_refused_by_name() -> None:
    """Nothing is ignored silently; an unprintable name is not repeated."""
    assert refusal({"model": "m", "messages": MESSAGES, "tempreature": 1}).param == "tempreature"
    assert refusal({"model": "m", "messages": MESSAGES, "secret\n": 1}).param == "a field"
    assert refusal({"model": "m", "messages": MESSAGES, "x" * 65: 1}).param == "a field"


def test_fields_of_openais_platform_have_no_effect() -> None:
    """SDKs send them; no engine sees them."""
    read = chat(user="u", metadata={"a": "b"}, store=True, service_tier="auto")
    assert set(read.forward) == {"messages"}


def test_the_larger_maximum_counts() -> None:
    """R03: with both fields, the engine-effective one; neither is passed on as it came."""
    read = chat(max_tokens=1, max_completion_tokens=10_000)
    assert read.max_tokens == 10_000
    assert set(read.forward) == {"messages"}
    assert chat(max_tokens=None, max_completion_tokens=7).max_tokens == 7


def test_sampling_fields_go_upstream_as_they_came() -> None:
    """Byte for byte, OpenAI's and SGLang's."""
    raw = b'{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":0.70,"top_k":5}'
    read = read_request("chat", raw, {})
    assert {name: bytes(value) for name, value in read.forward.items()} == {
        "messages": b'[{"role":"user","content":"x"}]',
        "temperature": b"0.70",
        "top_k": b"5",
    }


def test_the_last_of_two_equal_names_counts_everywhere() -> None:
    """What is checked is what is sent, also where a name comes twice."""
    raw = (
        b'{"model":"a","model":"m","max_tokens":9,"max_tokens":5,"temperature":9,"temperature":1,'
        b'"messages":[],"messages":[{"role":"user","content":"x"}]}'
    )
    try:
        read = read_request("chat", raw, {})
    except InvalidRequest:
        return
    assert (read.model, read.max_tokens) == ("m", 5)
    assert bytes(read.forward["temperature"]) == b"1"
    assert bytes(read.prompts[0]) == bytes(read.forward["messages"]) != b"[]"


def test_choices_and_prompts_multiply() -> None:
    """C10: n choices of each prompt of a list."""
    assert chat(n=4).sequences == 4
    read = completion(prompt=["a", "b", "c"], n=2)
    assert read.sequences == 6
    assert [json.loads(bytes(prompt)) for prompt in read.prompts] == ["a", "b", "c"]


@pytest.mark.parametrize("prompt", ["", [], [1, 2], [[1, 2]], None, 7, ["a"] * 129])
def test_only_texts_are_prompts(prompt: object) -> None:
    """Token ids are not: one out of the vocabulary kills an SGLang server."""
    assert refusal({"model": "m", "prompt": prompt}, "completions").param is not None


def test_best_of_is_n_or_nothing() -> None:
    """More choices than are returned would be generated unseen."""
    assert completion(n=2, best_of=2).sequences == 2
    with pytest.raises(UnsupportedParameter):
        completion(best_of=3)


@pytest.mark.parametrize(
    ("tier", "header", "batch"),
    [
        (None, None, False),
        ("auto", b"interactive", False),
        ("priority", None, False),
        ("flex", None, True),
        (None, b" Batch ", True),
        ("default", b"batch", True),
        ("flex", b"interactive", True),
    ],
)
def test_batch_is_asked_for_by_tier_or_header(
    tier: str | None, header: bytes | None, batch: bool
) -> None:
    """DESIGN 2.2: either is enough."""
    headers = {} if header is None else {b"x-weir-class": header}
    assert chat(headers, service_tier=tier).asked_batch is batch


def test_an_unknown_class_is_refused() -> None:
    """A typing error does not run as something else."""
    with pytest.raises(InvalidRequest, match="interactive or batch"):
        chat({b"x-weir-class": b"bulk"})


def test_usage_is_asked_for_in_a_stream_only() -> None:
    """S02: `stream_options` as OpenAI has it."""
    read = chat(stream=True, stream_options={"include_usage": True})
    assert (read.include_usage, read.continuous_usage) == (True, False)
    assert not chat(stream=True, stream_options={"include_usage": None}).include_usage


def test_every_message_is_checked_for_media() -> None:
    """DESIGN 6: whatever its role; what is allowed goes through as it came."""
    remote = {"type": "image_url", "image_url": {"url": "http://10.0.0.1/secret"}}
    last = {"role": "tool", "content": [remote]}
    param = refusal({"model": "m", "messages": [*MESSAGES, last]}).param
    assert param == "messages[1].content[0].image_url.url"
    content = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
    read = chat(messages=[{"role": "user", "content": content}])
    assert json.loads(bytes(read.prompts[0]))[0]["content"] == content


@given(text=st.text(max_size=30), tools=st.booleans())
def test_the_prompts_size_bounds_its_tokens(text: str, tools: bool) -> None:
    """A byte-level tokenizer makes at most one token of a byte: of the text, and of the tools."""
    offered = [{"type": "function", "function": {"name": text}}] if tools else None
    read = chat(messages=[{"role": "user", "content": text}], tools=offered)
    assert read.prompt_bytes[0] >= len(text.encode()) * (2 if tools else 1)
    assert completion(prompt=[text + "x", "y"]).prompt_bytes >= (len(text.encode()) + 1, 1)


def test_a_suffix_is_part_of_each_prompt() -> None:
    """Characters that must be tokens, and bytes that may be: of the prompt and of what follows it.
    A prompt that is missing is missing all the same."""
    without = completion(prompt=["ab", "c"])
    read = completion(prompt=["ab", "c"], suffix="x" * 1_000)
    assert read.prompt_characters == (1_002, 1_001)
    assert read.prompt_bytes == tuple(size + 1_002 for size in without.prompt_bytes)
    assert completion(suffix="").suffix is None
    assert refusal({"model": "m", "prompt": "", "suffix": "x"}, "completions").param == "prompt"


def test_what_normalising_adds_is_told_of_each_prompt() -> None:
    """U+1D160 is 4 bytes, and 12 once a tokenizer has normalised it; tools and suffix count too."""
    note = "\U0001d160"
    raw = f'{{"model":"m","prompt":["a","{note * 3}"],"suffix":"{note}"}}'.encode()
    assert read_request("completions", raw, {}).prompt_growth_bytes == (8, 32)
    raw = f'{{"model":"m","messages":[{{"role":"user","content":"{note}"}}]}}'.encode()
    assert read_request("chat", raw, {}).prompt_growth_bytes == (8,)


@given(body=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """Never anything but the contract's error."""
    for endpoint in ENDPOINTS:
        with contextlib.suppress(InvalidRequest):
            read_request(endpoint, body, {})


@pytest.mark.parametrize(
    ("switches", "allowed"),
    [
        ({"enable_thinking": False}, True),
        ({"chat_template": "{% for i in range(9) %}{% endfor %}"}, False),
        ({"tokenize": False}, False),
        ({"enable_thinking": {"chat_template": "x"}}, False),
    ],
)
def test_a_template_of_the_tenants_own_never_reaches_a_worker(
    switches: dict[str, object], allowed: bool
) -> None:
    """INV-12: only switches of the model's own template pass."""
    messages = [{"role": "user", "content": "hi"}]
    body = json.dumps({"model": "m", "messages": messages, "chat_template_kwargs": switches})
    if allowed:
        assert "chat_template_kwargs" in read_request("chat", body.encode(), {}).forward
        return
    with pytest.raises(InvalidRequest):
        read_request("chat", body.encode(), {})


@pytest.mark.parametrize(
    "field",
    [
        {"seed": 10**40},
        {"top_k": "x"},
        {"min_p": 2},
        {"regex": 5},
        {"stop_token_ids": ["x"]},
        {"ebnf": {}},
    ],
)
def test_an_engines_own_fields_are_checked_before_anything_is_reserved(
    field: dict[str, object],
) -> None:
    """A wrong type is the gateway's 400, not an admitted request that the engine refuses."""
    messages = [{"role": "user", "content": "hi"}]
    body = json.dumps({"model": "m", "messages": messages, **field}).encode()
    with pytest.raises(InvalidRequest):
        read_request("chat", body, {})


def test_no_prompt_of_a_list_may_be_empty() -> None:
    """As a single one may not."""
    with pytest.raises(InvalidRequest):
        read_request("completions", b'{"model": "m", "prompt": ["a", ""]}', {})


def test_alternatives_need_log_probabilities() -> None:
    """Otherwise an engine would drop the field unread."""
    assert chat(logprobs=True, top_logprobs=2).forward["top_logprobs"]
    for logprobs in (None, False):
        with pytest.raises(InvalidRequest, match="needs logprobs") as refused:
            chat(top_logprobs=2, logprobs=logprobs)
        assert refused.value.param == "top_logprobs"


def test_no_option_of_a_stream_is_dropped_unread() -> None:
    """What Weir never does may be declined; what it cannot do is refused."""
    assert chat(stream=True, stream_options={"include_obfuscation": False}).stream
    for options, param in (
        ({"include_obfuscation": True}, "stream_options"),
        ({"include_timing": True}, "stream_options.include_timing"),
    ):
        with pytest.raises(UnsupportedParameter) as refused:
            chat(stream=True, stream_options=options)
        assert refused.value.param == param


@pytest.mark.parametrize("role", ["wizard-secret", "x - at `$.secret`", "secret' - at `$.model`"])
def test_a_value_is_never_quoted(role: str) -> None:
    """INV-12: not even one that looks like the end of a message."""
    body = json.dumps({"model": "m", "messages": [{"role": role, "content": "a"}]}).encode()
    with pytest.raises(InvalidRequest) as caught:
        read_request("chat", body, {})
    assert "secret" not in caught.value.message
    assert caught.value.param == "messages[0].role"
