"""Content parts, as a message's content."""

import json
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from gateway.errors import InvalidRequest
from gateway.wire.media import PART_KINDS, Part
from gateway.wire.request import read_request

DATA = "data:image/png;base64,AA=="
MEDIA = ("image_url", "video_url", "audio_url", "input_audio")


def read(*parts: object, role: str = "user") -> Any:
    """The parts as they go upstream."""
    message = {"role": role, "content": [{"type": "text", "text": "x"}, *parts]}
    body = {"model": "m", "messages": [message]}
    request = read_request("chat", json.dumps(body).encode(), {})
    return json.loads(bytes(request.forward["messages"]))[0]["content"][1:]


def refusal(part: object, role: str = "user") -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        read(part, role=role)
    assert str(caught.value.param).startswith("messages[0].content[1]")
    assert "secret" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://10.0.0.1/secret"}},
        {"type": "image_url", "image_url": "https://example.com/secret"},
        {"type": "image_url", "image_url": [{"url": "https://example.com/secret"}]},
        {"type": "video_url", "video_url": {"url": "file:///etc/secret"}},
        {"type": "image_url", "image_url": {"url": "/etc/secret.png"}},
        {"type": "image_url", "image_url": {"url": "DATA:secret"}},
        {"type": "audio_url", "audio_url": {"url": " data:x", "detail": "secret"}},
        {"type": "image_url", "image_url": {"url": ["secret"]}},
        {"type": "image_url", "image_url": {"url": None}},
        {"type": "image_url", "image_url": {"url": DATA}, "image": "https://example.com/secret"},
        {"type": "text", "text": "x", "image_url": {"url": "https://example.com/secret"}},
        {"type": "text", "text": "x", "more": [{"deep": {"sourceURI": "ftp:secret"}}]},
        {
            "type": "input_audio",
            "input_audio": {"data": "https://example.com/secret", "format": "wav"},
        },
        {"type": "input_audio", "input_audio": {"data": "\n\nfile:///secret", "format": "wav"}},
    ],
)
def test_a_worker_fetches_nothing_for_a_tenant(part: dict[str, object]) -> None:
    """DESIGN 6: media come as data, since a URL is a way into the workers' network; at any depth,
    whatever the field is called."""
    refusal(part)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_embeds", "image_embeds": "secret"},
        {"type": "input_image", "image_url": DATA},
        {"type": "tool_result", "content": [{"type": "text", "text": "x"}]},
        {"type": "refusal", "refusal": "secret"},
        {"type": "tool_reference", "name": "secret"},
        {"type": "secret - at `$.messages`"},
        {"type": ["text"], "text": "secret"},
        {"text": "secret"},
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_parts_of_other_kinds_are_refused(part: dict[str, object], role: str) -> None:
    """INV-12: tensors are unpacked by the worker; a refusal SGLang would take for a medium."""
    refused = refusal(part, role)
    assert refused.code == "invalid_value"
    if isinstance(part.get("type"), str):
        assert refused.param == "messages[0].content[1].type"
        assert "must be one of text, " in refused.message


@pytest.mark.parametrize(
    ("part", "stranger"),
    [
        ({"type": "image_url", "image_url": {"url": DATA}, "content_hash": "secret"}, ""),
        ({"type": "image_url", "image_url": {"url": DATA}, "precomputed": {"a": "secret"}}, ""),
        ({"type": "video_url", "video_url": {"url": DATA}, "max_tokens_per_frame": 9}, ""),
        ({"type": "text", "text": "a", "image_url": {"url": DATA}}, ""),
        ({"type": "text", "text": "a", "rid": "secret"}, ""),
        ({"type": "image_url", "image_url": {"url": DATA, "content_hash": "s"}}, ".image_url"),
        ({"type": "image_url", "image_url": {"url": DATA, "max_dynamic_patch": 9}}, ".image_url"),
        ({"type": "video_url", "video_url": {"url": DATA, "max_image_tokens": 9}}, ".video_url"),
    ],
)
def test_a_part_has_only_the_fields_of_its_kind(part: dict[str, Any], stranger: str) -> None:
    """INV-12: a hash that a tenant gives would find what others' images left in a cache; no part
    of one kind hides another."""
    inner = part[stranger[1:]] if stranger else part
    name = list(inner)[-1]
    refused = refusal(part)
    assert refused.code == "unsupported_parameter"
    assert refused.param == f"messages[0].content[1]{stranger}.{name}"


@pytest.mark.parametrize("types", [("text", "image_url"), ("image_url", "text")])
def test_a_type_that_comes_twice_does_not_pass_for_another(types: tuple[str, str]) -> None:
    """What one parser reads as text is not another's medium."""
    twice = f'{{"type":"{types[0]}","text":"a","type":"{types[1]}"}}'
    body = f'{{"model":"m","messages":[{{"role":"user","content":[{twice}]}}]}}'
    with pytest.raises(InvalidRequest):
        read_request("chat", body.encode(), {})


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "see http://a", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}},
        {"type": "thinking", "thinking": "a"},
        {"type": "reasoning", "text": "a"},
        {"type": "image_url", "image_url": {"url": DATA, "detail": "low"}},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA==", "fps": 1}},
        {"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ],
)
def test_media_as_data_are_passed_on(part: dict[str, object]) -> None:
    """Text, and media that the request itself holds; a URL within a text is only text."""
    assert read(part) == [part]


def test_the_kinds_that_are_told_are_those_that_are_taken() -> None:
    """Each kind has a struct, and each struct is told of."""
    tags = {kind.__struct_config__.tag for kind in Part.__args__}
    assert tags == set(PART_KINDS)


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool"])
def test_messages_of_every_role_are_checked(role: str) -> None:
    """A tool's answer is the tenant's own text too."""
    refused = refusal({"type": "image_url", "image_url": {"url": "http://a"}}, role)
    assert "data: URLs" in refused.message


def test_a_part_without_end_is_refused() -> None:
    """However deep the decoder goes, reading it fails as the tenant's error."""
    for depth in (900, 100_000):
        deep = b'{"type":"text","text":"x","more":' + b"[" * depth + b"]" * depth + b"}"
        body = b'{"model":"m","messages":[{"role":"user","content":[' + deep + b"]}]}"
        with pytest.raises(InvalidRequest) as caught:
            read_request("chat", body, {})
        assert caught.value.status == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("http://a"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["url", "x", "image_url", "uri"]), inner)
    ),
    max_leaves=8,
)


@given(kind=st.sampled_from(MEDIA), value=JSON, more=JSON)
def test_whatever_a_part_holds_no_reference_passes(kind: str, value: object, more: object) -> None:
    """Read or refused, never an unforeseen error."""
    body = {"role": "user", "content": [{"type": kind, kind: value, "more": more}]}
    try:
        read_request("chat", msgspec.json.encode({"model": "m", "messages": [body]}), {})
    except InvalidRequest:
        return
    raise AssertionError("`more` is no field of a part")
