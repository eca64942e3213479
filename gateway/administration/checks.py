"""What names, networks, zones and addresses may be, checked before anything is written."""

import ipaddress
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from urllib.parse import SplitResult, urlsplit

from billing.domain.money import CURRENCY_EXPONENTS
from gateway.domain.tenant import Model, Worker
from gateway.errors import Unprocessable

TENANT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}")
HOST_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
ENDS_IN_NUMBER = re.compile(r"(^|\.)([0-9]+|0[xX][0-9a-fA-F]*)$")
WORKER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,126}")
ENGINE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
HEADER_VALUE = re.compile(r"[!-~]{1,4096}")
URL = re.compile(r"[!-~]{1,2048}")
EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]+(\.[^@\s.]+)*")
NETWORKS_MAX = 100
NAMED_CHARACTERS = 60
"""So much of what was sent is said again where it is refused."""
PASSWORD_CHARACTERS_MIN = 12
PASSWORD_CHARACTERS_MAX = 1024
TOKENS_MAX = 2**31 - 1
EXPIRY_MAX_MS = 253_402_300_799_999
"""The end of the year 9999: the last instant that every part can represent."""


def check_tenant_id(tenant_id: str, *, field: str = "id") -> str:
    """`tenant_id`; it becomes a Redis hash tag and part of addresses, so its form is narrow."""
    if not TENANT_ID.fullmatch(tenant_id):
        raise _wrong(field, "1 to 63 of a-z, 0-9, - and _, beginning with a letter or digit")
    return tenant_id


def check_name(name: str, *, field: str = "name") -> str:
    """`name` without surrounding blanks: 1 to 200 printable characters."""
    name = name.strip()
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise _wrong(field, "1 to 200 printable characters")
    return name


def check_token_name(name: str) -> str:
    """A name that can be a segment of a path: the token is revoked by it."""
    name = check_name(name)
    if "/" in name or name in (".", ".."):
        raise _wrong("name", "without a slash, and neither . nor ..")
    return name


def check_currency(currency: str) -> str:
    """A currency whose number of decimals is known."""
    if currency not in CURRENCY_EXPONENTS:
        raise _wrong("currency", "a known three-letter code such as USD")
    return currency


def check_time_zone(time_zone: str) -> str:
    """A time zone of the IANA database, by its own name."""
    if time_zone not in _time_zones():
        raise _wrong("time_zone", "an IANA time zone such as Europe/Berlin")
    return time_zone


@cache
def _time_zones() -> frozenset[str]:
    """The names of the database that is installed with Weir, so the same on every host: what a
    host has beside them (`localtime`, `right/…`) is another zone elsewhere. `Factory` is there for
    what nobody has set."""
    names = files("tzdata").joinpath("zones").read_text(encoding="ascii")
    return frozenset(names.split()) - {"Factory"}


def check_networks(networks: Sequence[str] | None) -> list[str] | None:
    """At most NETWORKS_MAX networks in canonical CIDR; a single address is its own network. None
    allows all."""
    if networks is None:
        return None
    if not 1 <= len(networks) <= NETWORKS_MAX:
        raise _wrong("ip_allow", f"null, or 1 to {NETWORKS_MAX} networks")
    return [str(_network(text)) for text in networks]


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        if "%" in text:
            raise ValueError("a zone means something on its own host only, and has no end")
        return ipaddress.ip_network(text)
    except ValueError as error:
        must = "networks in CIDR such as 10.0.0.0/8, host bits zero"
        raise _wrong("ip_allow", f"{must}; {text[:NAMED_CHARACTERS]!r} is none") from error


def check_model(model: Model) -> Model:
    """A model whose token counts can be true together."""
    if not MODEL_ID.fullmatch(model.id):
        raise _wrong("id", "1 to 255 of letters, digits and . _ : / @ + -")
    if not 1 <= model.context_tokens <= TOKENS_MAX:
        raise _wrong("context_tokens", "a positive whole number")
    if not 1 <= model.max_output_tokens <= model.context_tokens:
        raise _wrong("max_output_tokens", "between 1 and context_tokens")
    if not 1 <= model.default_output_tokens <= model.max_output_tokens:
        raise _wrong("default_output_tokens", "between 1 and max_output_tokens")
    return model


def is_host(name: str) -> bool:
    """Whether a name can be looked up at all: an address in its usual form, or dot-separated labels
    of 1 to 63 letters, digits, - and _ (RFC 1035, and the underscore that container networks use).
    What ends in a number is an address or nothing: `127.1` would hide which server it means."""
    if ":" in name:
        try:
            ipaddress.IPv6Address(name.partition("%")[0])
        except ValueError:
            return False
        return True
    if ENDS_IN_NUMBER.search(name):
        try:
            ipaddress.IPv4Address(name)
        except ValueError:
            return False
        return True
    return len(name) <= 253 and all(HOST_LABEL.fullmatch(label) for label in name.split("."))


def check_address(url: str, *, field: str = "url") -> SplitResult:
    """An address that can be reached by HTTP, in its parts: nothing in it but scheme, host, port
    and path."""
    try:
        parts = urlsplit(url)
        reachable = (
            URL.fullmatch(url)  # urlsplit leaves out what it does not like, such as a line's end
            and parts.scheme in ("http", "https")
            and parts.port != 0
            and is_host(parts.hostname or "")
        )
    except ValueError:
        reachable = False
    if not reachable:
        raise _wrong(field, "an http:// or https:// address")
    if "?" in url or "#" in url or "@" in parts.netloc:
        raise _wrong(field, "an address without query, fragment or credentials")
    return parts


def check_worker(worker: Worker) -> Worker:
    """A worker that can be reached by HTTP; `url` carries neither `/v1` nor a query."""
    if not WORKER_ID.fullmatch(worker.id):
        raise _wrong("id", "1 to 127 of letters, digits and . _ : -")
    if check_address(worker.url).path.rstrip("/").endswith("/v1"):
        raise _wrong("url", "the worker's base address, without /v1")
    if not ENGINE_NAME.fullmatch(worker.engine):
        raise _wrong("engine", "1 to 63 of a-z, 0-9, - and _")
    if worker.api_key is not None and not HEADER_VALUE.fullmatch(worker.api_key):
        raise _wrong("api_key", "1 to 4096 visible ASCII characters")
    return worker


def check_email(email: str) -> str:
    """An address with one @; it is compared without regard to case."""
    email = email.strip()
    if len(email) > 254 or not EMAIL.fullmatch(email) or not email.isprintable():
        raise _wrong("email", "an address such as admin@example.com")
    return email


def check_password(password: str) -> str:
    """12 to 1024 characters; which ones is the user's matter."""
    if not PASSWORD_CHARACTERS_MIN <= len(password) <= PASSWORD_CHARACTERS_MAX:
        raise _wrong("password", "12 to 1024 characters")
    return password


def check_expiry(expires_at_ms: int | None, *, now_ms: int) -> int | None:
    """An instant that is still to come, or None for never."""
    if expires_at_ms is not None and not now_ms < expires_at_ms <= EXPIRY_MAX_MS:
        raise _wrong("expires_at", "an instant in the future")
    return expires_at_ms


def _wrong(field: str, wanted: str) -> Unprocessable:
    return Unprocessable(f"{field}: must be {wanted}", param=field)
