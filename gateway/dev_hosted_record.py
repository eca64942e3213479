"""What `weir dev` remembers of the hosted provider that it registered, so that a restart leaves as
it is what an administrator has changed since."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from backend.embedded.data_dir import write_private
from gateway.administration.hosted_checks import same_host
from gateway.domain.hosted import HostedModel, HostedProvider

MERGED_BY_THEMSELVES = ("name", "models", "api_key")


class Registered(msgspec.Struct, frozen=True):
    """What a start asked for; of the key that is there by its doing only the digest."""

    provider: HostedProvider
    key_digest: str | None = None


def read_record(record: Path) -> dict[str, Registered]:
    """What earlier starts registered, by name; nothing where there was none."""
    try:
        return msgspec.json.decode(record.read_bytes(), type=dict[str, Registered])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}


def write_record(record: Path, registered: dict[str, Registered]) -> None:
    """Keep it for the next start."""
    write_private(record, msgspec.json.encode(registered))


def first_registered(wanted: HostedProvider) -> Registered:
    """The record of a provider that is registered as it is wanted."""
    return Registered(replace(wanted, api_key=None), _digest(wanted.api_key))


def as_left(
    before: Registered, stored: HostedProvider, wanted: HostedProvider, *, follows: bool
) -> tuple[HostedProvider, Registered]:
    """What to register, and its record: as `wanted` but for what was changed since `before`.

    `follows` says that the server is a process of ours: its address is wherever it is now.
    """
    names = [each for each in stored.__struct_fields__ if each not in MERGED_BY_THEMSELVES]
    changed: dict[str, Any] = {
        name: getattr(stored, name)
        for name in names
        if getattr(stored, name) != getattr(before.provider, name)
    }
    if follows:
        changed.pop("url", None)
    models = _models(before.provider.models, stored.models, wanted.models)
    merged = replace(wanted, **changed, models=models)
    key_is_ours = _digest(stored.api_key) == before.key_digest
    api_key = _api_key(before, stored, wanted, merged.url, ours=key_is_ours, follows=follows)
    kept_digest = _digest(api_key if key_is_ours else wanted.api_key)
    record = Registered(replace(wanted, api_key=None), kept_digest)
    return replace(merged, api_key=api_key), record


def _models(
    before: dict[str, HostedModel], stored: dict[str, HostedModel], wanted: dict[str, HostedModel]
) -> dict[str, HostedModel]:
    changed = {ours: theirs for ours, theirs in stored.items() if before.get(ours) != theirs}
    removed = before.keys() - stored.keys()
    merged = {ours: theirs for ours, theirs in wanted.items() if ours not in removed} | changed
    return merged or dict(stored)


def _api_key(
    before: Registered,
    stored: HostedProvider,
    wanted: HostedProvider,
    url: str,
    *,
    ours: bool,
    follows: bool,
) -> str | None:
    """A key goes to no other server than the one that it was given for, but to our own process."""
    if not same_host(stored.url, url):
        stays = follows and same_host(stored.url, before.provider.url)
        return stored.api_key if stays else wanted.api_key
    if not ours or not same_host(url, wanted.url) or wanted.api_key is None:
        return stored.api_key
    return wanted.api_key


def _digest(api_key: str | None) -> str | None:
    return None if api_key is None else hashlib.sha256(api_key.encode()).hexdigest()
