"""Content parts of messages: text, and media as data only. A worker that fetches a tenant's URL is
a way into its network; one that unpacks a tenant's tensors, or trusts a hash that a tenant gives of
its image, is a way into the worker or to what another tenant showed it."""

from typing import Annotated, Literal

import msgspec

DataUrl = Annotated[str, msgspec.Meta(pattern="^data:")]
"""Media that the request itself holds."""
Base64 = Annotated[str, msgspec.Meta(pattern=r"^(?![\s\S]{0,16}:)")]
"""No scheme before it: engines make a `data:` URL of it."""


class CacheControl(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where other providers cache up to; no engine reads it."""

    type: Literal["ephemeral"]
    ttl: str | None = None


class CacheBreakpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """OpenAI's name for the same."""

    mode: Literal["explicit"]
    ttl: str | None = None


class _Part(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type"
):
    cache_control: CacheControl | None = None
    prompt_cache_breakpoint: CacheBreakpoint | None = None


class TextPart(_Part, frozen=True, tag="text"):
    """Text."""

    text: str


class ThinkingPart(_Part, frozen=True, tag="thinking"):
    """What the assistant thought; `reasoning` is the same."""

    thinking: str | None = None
    text: str | None = None


class ReasoningPart(_Part, frozen=True, tag="reasoning"):
    """What the assistant thought; `thinking` is the same."""

    thinking: str | None = None
    text: str | None = None


class Image(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An image. SGLang's `content_hash` is not the tenant's: it names what is in a cache that no
    salt keeps apart."""

    url: DataUrl
    detail: Literal["auto", "low", "high"] | None = None


class ImagePart(_Part, frozen=True, tag="image_url"):
    """An image as a `data:` URL."""

    image_url: Image


class Video(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A video, and how much of it the engine looks at."""

    url: DataUrl
    fps: Annotated[float, msgspec.Meta(gt=0)] | None = None
    max_frames: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None


class VideoPart(_Part, frozen=True, tag="video_url"):
    """A video as a `data:` URL."""

    video_url: Video


class AudioUrl(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sound."""

    url: DataUrl


class AudioUrlPart(_Part, frozen=True, tag="audio_url"):
    """A sound as a `data:` URL."""

    audio_url: AudioUrl


class InlineAudio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sound. SGLang fails on other formats."""

    data: Base64
    format: Literal["wav", "mp3"]


class InlineAudioPart(_Part, frozen=True, tag="input_audio"):
    """A sound in base64."""

    input_audio: InlineAudio


Part = (
    TextPart | ThinkingPart | ReasoningPart | ImagePart | VideoPart | AudioUrlPart | InlineAudioPart
)
"""No `refusal`: SGLang takes it for a medium. A message has a field for it."""

PART_KINDS = (
    "text", "thinking", "reasoning", "image_url", "video_url", "audio_url", "input_audio",
)  # fmt: skip


def characters_of(content: str | list[Part] | None) -> int:
    """Characters of text that every template writes into the prompt."""
    if isinstance(content, list):
        return sum(len(part.text) for part in content if isinstance(part, TextPart))
    return len(content or "")


def has_media(content: str | list[Part] | None) -> bool:
    """Whether there is something whose tokens neither its bytes nor a tokenizer of text tell."""
    texts = (TextPart, ThinkingPart, ReasoningPart)
    return isinstance(content, list) and not all(isinstance(part, texts) for part in content)
