"""What a hosted provider may be, checked before anything is written. Nothing is asked of it."""

import re
from collections.abc import Collection
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from gateway.administration.checks import HEADER_VALUE, check_address
from gateway.domain.field_errors import unprocessable_field
from gateway.domain.hosted import HostedProvider
from gateway.domain.origin import origin_of
from gateway.errors import Unprocessable
from gateway.wire.fields import SGLANG_EXTENSIONS

MODEL_NAME = re.compile(r"[!-~]{1,255}")
PROVIDER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
RANK_MAX = 1_000_000
PATH_DEFAULT = "/v1"


def check_base_url(url: str) -> str:
    """A provider's base address without a trailing slash; `/v1` stands for an empty path."""
    check_address(url)
    base = url.rstrip("/")
    return base if urlsplit(base).path else base + PATH_DEFAULT


def check_provider(provider: HostedProvider, known_models: Collection[str]) -> HostedProvider:
    """A provider that could be asked, in the form in which it is stored. Raises Unprocessable."""
    if not PROVIDER_NAME.fullmatch(provider.name):
        raise _wrong("name", "1 to 63 of a-z, 0-9, - and _, beginning with a letter or digit")
    if not provider.models:
        raise _wrong("models", "at least one of our models with the provider's name of it")
    for ours, theirs in provider.models.items():
        field = f"models.{ours}"
        if ours not in known_models:
            raise Unprocessable(f"{field}: there is no such model", param=field)
        if not MODEL_NAME.fullmatch(theirs.name):
            raise _wrong(f"{field}.name", "1 to 255 visible ASCII characters")
    if provider.api_key is not None and not HEADER_VALUE.fullmatch(provider.api_key):
        raise _wrong("api_key", "1 to 4096 visible ASCII characters")
    if abs(provider.rank) > RANK_MAX:
        raise _wrong("rank", f"between -{RANK_MAX} and {RANK_MAX}")
    for extension in provider.extensions:
        if extension not in SGLANG_EXTENSIONS:
            raise _wrong(
                "extensions", "fields of SGLang's: " + ", ".join(sorted(SGLANG_EXTENSIONS))
            )
    checked = replace(
        provider,
        url=check_base_url(provider.url),
        extensions=tuple(sorted(set(provider.extensions))),
    )
    try:
        return msgspec.convert(msgspec.to_builtins(checked), HostedProvider)
    except msgspec.ValidationError as error:
        raise unprocessable_field(error) from error


def same_host(one: str, other: str) -> bool:
    """Whether two checked addresses are of one server, which knows a key of the other already."""
    return (urlsplit(one).scheme, origin_of(one)) == (urlsplit(other).scheme, origin_of(other))


def _wrong(field: str, wanted: str) -> Unprocessable:
    return Unprocessable(f"{field}: must be {wanted}", param=field)
