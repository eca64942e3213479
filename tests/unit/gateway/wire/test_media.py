import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.errors import InvalidRequest
from gateway.wire.media import MEDIA_PARTS, refuse_remote_media
from gateway.wire.request import read_request

DATA = "data:image/png;base64,AA=="


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://10.0.0.1/secret"}},
        {"type": "image_url", "image_url": "https://example.com/secret"},
        {"type": "image_url", "image_url": [{"url": "https://example.com/secret"}]},
        {"type": "video_url", "video_url": {"url": "file:///etc/secret"}},
        {"type": "image_url", "image_url": {"url": "/etc/secret.png"}},
        {"type": "audio_url", "audio_url": {"url": " data:x", "detail": "secret"}},
        {"type": "image_url", "image_url": {"url": ["secret"]}},
        {"type": "image_url", "image_url": {"url": None}},
        {"type": "image_url", "image_url": {"url": DATA}, "image": "https://example.com/secret"},
        {"type": "text", "text": "x", "image_url": {"url": "https://example.com/secret"}},
        {"type": "text", "text": "x", "more": [{"deep": {"sourceURI": "ftp:secret"}}]},
        {"type": "input_audio", "input_audio": {"data": "https://example.com/secret"}},
    ],
)
def test_a_worker_fetches_nothing_for_a_tenant(part: dict[str, object]) -> None:
    """DESIGN 6: media come as data, since a URL is a way into the workers' network; at any depth,
    whatever the field is called."""
    with pytest.raises(InvalidRequest) as caught:
        refuse_remote_media([{"type": "text", "text": "x"}, part])
    assert caught.value.param == "messages"
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_embeds", "image_embeds": "secret"},
        {"type": "input_image", "image_url": DATA},
        {"type": "tool_result", "content": [{"type": "text", "text": "x"}]},
        {"text": "secret"},
        {"type": ["text"], "text": "secret"},
        {"type": "image_url", "image_url": {"url": DATA, "content_hash": "secret"}},
        {"type": "image_url", "image_url": {"url": DATA, "max_dynamic_patch": 9_999}},
    ],
)
def test_parts_of_other_kinds_are_refused(part: dict[str, object]) -> None:
    """INV-12: a hash that a tenant gives would find what others' images left in a cache; tensors
    are unpacked by the worker."""
    with pytest.raises(InvalidRequest) as caught:
        refuse_remote_media([part])
    assert caught.value.param == "messages"
    assert "secret" not in caught.value.message


def test_media_as_data_are_passed_on() -> None:
    """Text, and media that the request itself holds; a URL within a text is only text."""
    content: list[dict[str, object]] = [
        {"type": "text", "text": "see http://example.com", "cache_control": {"type": "ephemeral"}},
        {"type": "image_url", "image_url": {"url": DATA, "detail": "low"}},
        {"type": "image_url", "image_url": DATA},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA==", "fps": 1}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "refusal", "refusal": "No: http://example.com"},
    ]
    refuse_remote_media(content)


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool"])
def test_messages_of_every_role_are_checked(role: str) -> None:
    """A tool's answer is the tenant's own text too."""
    message = {"role": role, "content": [{"type": "image_url", "image_url": {"url": "http://a"}}]}
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}, message]}
    with pytest.raises(InvalidRequest, match="data: URLs"):
        read_request("chat", json.dumps(body).encode(), {})


def test_a_part_without_end_is_refused() -> None:
    """However deep the decoder goes, reading it fails as the tenant's error."""
    for depth in (900, 100_000):
        deep = b'{"type":"text","text":"x","more":' + b"[" * depth + b"]" * depth + b"}"
        body = b'{"model":"m","messages":[{"role":"user","content":[' + deep + b"]}]}"
        try:
            read_request("chat", body, {})
        except InvalidRequest as error:
            assert error.status == 400  # noqa: PT017 - that it may pass is the point


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("http://a"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["url", "x", "image_url", "uri"]), inner)
    ),
    max_leaves=8,
)


@given(kind=st.sampled_from(sorted(MEDIA_PARTS)), value=JSON, more=JSON)
def test_whatever_a_part_holds_no_reference_passes(kind: str, value: object, more: object) -> None:
    """Read or refused, never an unforeseen error."""
    try:
        refuse_remote_media([{"type": kind, kind: value, "more": more}])
    except InvalidRequest:
        return
    assert "http://a" not in json.dumps([value, more])
