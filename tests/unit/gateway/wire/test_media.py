import pytest

from gateway.errors import InvalidRequest
from gateway.wire.media import refuse_remote_media


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://10.0.0.1/secret"}},
        {"type": "image_url", "image_url": "https://example.com/secret"},
        {"type": "video_url", "video_url": {"url": "file:///etc/secret"}},
        {"type": "audio_url", "audio_url": {"url": " data:x", "detail": "secret"}},
        {"type": "image_url", "image_url": {"url": ["secret"]}},
    ],
)
def test_a_worker_fetches_nothing_for_a_tenant(part: dict[str, object]) -> None:
    """DESIGN 6: media come as data, since a URL is a way into the workers' network."""
    with pytest.raises(InvalidRequest) as caught:
        refuse_remote_media([{"type": "text", "text": "x"}, part])
    assert caught.value.param == "messages"
    assert "secret" not in caught.value.message


def test_media_as_data_are_passed_on() -> None:
    """Text, and media that the request itself holds; a URL within a text is only text."""
    content: list[dict[str, object]] = [
        {"type": "text", "text": "see http://example.com"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ]
    refuse_remote_media(content)
