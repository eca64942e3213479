"""Content parts of messages: text, and media as data only. A worker that fetches a tenant's URL is
a way into its network; one that unpacks a tenant's tensors, or trusts a hash that a tenant gives of
its image, is a way into the worker or to what another tenant showed it."""

from collections.abc import Iterable, Mapping

from gateway.errors import InvalidRequest

TEXT_PARTS = frozenset({"text", "thinking", "reasoning", "refusal", "tool_reference"})
MEDIA_PARTS = {
    "image_url": frozenset({"url", "detail"}),
    "video_url": frozenset({"url", "fps", "max_frames"}),
    "audio_url": frozenset({"url"}),
    "input_audio": frozenset({"data", "format"}),
}
"""Kinds of parts, and the fields of what each holds. SGLang's others are not the tenant's:
`content_hash` names what is in a cache that no salt keeps apart."""

_TEXTS = frozenset({"type", "text", "thinking", "reasoning", "refusal", "name"})


def refuse_remote_media(parts: Iterable[Mapping[str, object]]) -> None:
    """Check a message's content parts. Raises InvalidRequest where one is of an unknown kind, or
    refers to anything that the request does not hold itself; nothing of it is quoted."""
    try:
        for part in parts:
            _check_part(part)
    except RecursionError:
        raise InvalidRequest("a content part is nested too deeply", param="messages") from None


def _check_part(part: Mapping[str, object]) -> None:
    kind = part.get("type")
    media = MEDIA_PARTS.get(kind) if isinstance(kind, str) else None
    if media is None and not (isinstance(kind, str) and kind in TEXT_PARTS):
        kinds = ", ".join(sorted(TEXT_PARTS | MEDIA_PARTS.keys()))
        raise InvalidRequest(f"a content part must be one of {kinds}", param="messages")
    for name, value in part.items():
        if media is not None and name == kind and isinstance(value, dict):
            _check_media(value, media)
        if name not in _TEXTS:
            _refuse_references(name, value)


def _check_media(value: Mapping[str, object], known: frozenset[str]) -> None:
    if not value.keys() <= known:
        raise InvalidRequest(
            f"media take only {', '.join(sorted(known))}",
            param="messages",
        )


def _refuse_references(name: str, value: object) -> None:
    """Refuse a URL at any depth: what is called one, and what looks like one."""
    called_one = name.lower().endswith(("url", "uri"))
    if isinstance(value, dict):
        for inner_name, inner in value.items():
            _refuse_references(inner_name, inner)
    elif isinstance(value, list) and not called_one:
        for inner in value:
            _refuse_references(name, inner)
    elif not (isinstance(value, str) and value.startswith("data:")) and (
        called_one or (isinstance(value, str) and "://" in value)
    ):
        raise InvalidRequest("media must be given as data: URLs", param="messages")
