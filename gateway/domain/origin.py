"""Which server an address means, so that a worker is never mistaken for a hosted provider. Pure."""

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from gateway.domain.tenant import Worker

Origin = tuple[str, int]
"""Host in one spelling, and port. The scheme is no part of it: one server may speak both."""
_PORTS = {"http": 80, "https": 443}
_LOOPBACK = "127.0.0.1"


def origin_of(url: str) -> Origin | None:
    """The server that an address means, or None where it means none.

    Nothing is looked up: two names of one machine are two servers, but for `localhost`.
    """
    try:
        parts = urlsplit(url)
        port = _PORTS.get(parts.scheme) if parts.port is None else parts.port
    except ValueError:
        return None
    if not parts.hostname or port is None:
        return None
    return _one_spelling(parts.hostname), port


def name_sharing(url: str, others: Mapping[str, str]) -> str | None:
    """Of several addresses by name, the first by name that is of the same server as `url`."""
    origin = origin_of(url)
    if origin is None:
        return None
    return next((name for name in sorted(others) if origin_of(others[name]) == origin), None)


def at_no_provider(workers: Iterable[Worker], provider_urls: Iterable[str]) -> dict[str, Worker]:
    """By id the workers that may be used: a worker at a provider's server, be the provider disabled
    or not, would send there what must stay here."""
    theirs = {origin_of(url) for url in provider_urls} - {None}
    return {worker.id: worker for worker in workers if origin_of(worker.url) not in theirs}


def _one_spelling(host: str) -> str:
    host = host.lower().removesuffix(".")
    if host == "localhost":
        return _LOOPBACK
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
