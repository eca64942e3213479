"""Images, audio and video within messages: as data only, since a worker that fetches a tenant's URL
is a way into its network."""

from collections.abc import Iterable, Mapping

from gateway.errors import InvalidRequest


def refuse_remote_media(parts: Iterable[Mapping[str, object]]) -> None:
    """Check a message's content parts. Raises InvalidRequest where one names a URL that is not
    `data:`."""
    for part in parts:
        for name, value in part.items():
            url = value.get("url", "data:") if isinstance(value, dict) else value
            names_one = isinstance(value, dict) or name.endswith("url")
            if names_one and not (isinstance(url, str) and url.startswith("data:")):
                raise InvalidRequest("media must be given as data: URLs", param="messages")
