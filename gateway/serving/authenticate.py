"""Who is asking: API key to tenant. The only place that decides it."""

import hashlib
import ipaddress
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from typing import NamedTuple

from gateway.domain.tenant import ApiKey, Model, RequestClass, Tenant
from gateway.errors import InvalidApiKey, ModelNotFound, Overloaded, PermissionDenied
from gateway.serving.ports import Directory

PARSED_MAX = 4096
"""Of so many different lists of networks a process keeps what they come to; of a list of a hundred
that is about 15 kB."""


class _Ranges(NamedTuple):
    """Addresses as numbers: neither of the ranges touches another, and both rise."""

    first: list[int]
    last: list[int]


@dataclass(frozen=True)
class Caller:
    """An authenticated tenant and the key it used."""

    tenant: Tenant
    key: ApiKey


def authenticate(
    headers: Mapping[bytes, bytes],
    client_ip: str | None,
    directory: Directory,
    *,
    now_ms: int,
    directory_stale_ms_max: int,
    stores_unseen_ms_max: int,
) -> Caller:
    """The caller behind `authorization: Bearer <key>`.

    Raises InvalidApiKey, PermissionDenied(ip_not_allowed), or Overloaded(admission_unavailable)
    where Postgres has not been seen for `directory_stale_ms_max`, or neither store for
    `stores_unseen_ms_max`: a revocation could be missed.
    """
    scheme, _, secret = headers.get(b"authorization", b"").strip().partition(b" ")
    if scheme.lower() != b"bearer" or not secret.strip():
        raise InvalidApiKey("no API key was given: send it as 'Authorization: Bearer <key>'")
    if not is_trusted(
        directory,
        directory_stale_ms_max=directory_stale_ms_max,
        stores_unseen_ms_max=stores_unseen_ms_max,
    ):
        raise Overloaded("keys cannot be checked at the moment", code="admission_unavailable")
    key = directory.key_by_digest(hashlib.sha256(secret.strip()).digest())
    if key is None or key.revoked_at_ms is not None:
        raise InvalidApiKey("the API key is wrong or was revoked")
    if key.expires_at_ms is not None and key.expires_at_ms <= now_ms:
        raise InvalidApiKey("the API key has expired")
    tenant = directory.tenant(key.tenant_id)
    if tenant is None or tenant.suspended:
        raise InvalidApiKey("the tenant of this API key is suspended")
    if key.ip_allow is not None and not _allowed(client_ip, key.ip_allow):
        raise PermissionDenied(
            "this API key may not be used from this address", code="ip_not_allowed"
        )
    return Caller(tenant, key)


def is_trusted(
    directory: Directory, *, directory_stale_ms_max: int, stores_unseen_ms_max: int
) -> bool:
    """Whether the directory is young enough to decide on a key."""
    return (
        directory.age_ms <= directory_stale_ms_max
        and directory.revocations_age_ms <= stores_unseen_ms_max
    )


def _allowed(client_ip: str | None, networks: tuple[str, ...]) -> bool:
    try:
        address = ipaddress.ip_address(client_ip or "")
    except ValueError:  # a peer without an address, such as a Unix socket's
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    ranges = _parsed(networks)[address.version]
    number = int(address)
    place = bisect_right(ranges.first, number)
    return place > 0 and number <= ranges.last[place - 1]


@lru_cache(maxsize=PARSED_MAX)
def _parsed(networks: tuple[str, ...]) -> dict[int, _Ranges]:
    """The ranges by version of IP: parsing is too slow to be done for each request."""
    all_of_them = [ipaddress.ip_network(text, strict=False) for text in networks]
    fours = [each for each in all_of_them if isinstance(each, IPv4Network)]
    sixes = [each for each in all_of_them if isinstance(each, IPv6Network)]
    return {
        4: _ranges(ipaddress.collapse_addresses(fours)),
        6: _ranges(ipaddress.collapse_addresses(sixes)),
    }


def _ranges(networks: Iterable[IPv4Network | IPv6Network]) -> _Ranges:
    apart = list(networks)
    return _Ranges(
        [int(each.network_address) for each in apart],
        [int(each.broadcast_address) for each in apart],
    )


def usable_models(caller: Caller, directory: Directory) -> list[Model]:
    """The models that the key may use."""
    allowed = caller.key.models
    return [model for model in directory.models() if allowed is None or model.id in allowed]


def usable_model(caller: Caller, model_id: str, directory: Directory) -> Model:
    """That model. Raises ModelNotFound, PermissionDenied(model_not_allowed)."""
    model = directory.model(model_id)
    if model is None:
        named = len(model_id) <= 128 and model_id.isprintable()
        shown = f"the model '{model_id}'" if named else "that model"
        raise ModelNotFound(f"{shown} does not exist", param="model")
    if caller.key.models is not None and model_id not in caller.key.models:
        raise PermissionDenied(f"this API key may not use the model '{model_id}'", param="model")
    return model


def request_class(caller: Caller, *, asked_batch: bool) -> RequestClass:
    """The class of a request: the key's, or less where the request asks for less."""
    return RequestClass.BATCH if asked_batch else caller.key.request_class
