"""What a Redis URL says: one server, a service that Sentinels watch over, or a cluster.

    redis://[user:password@]host[:port][/db]            rediss:// with TLS
    unix://[user:password@]/path/to.sock[?db=0]
    redis+sentinel://[user:password@]host:port,host:port/service[/db]
    redis+cluster://[user:password@]host:port,host:port
    rediss+sentinel://, rediss+cluster://               the same with TLS

Options after `?`: `ssl_ca_certs`, `ssl_cert_reqs` (`required`, `none`), `ssl_certfile`,
`ssl_keyfile`, `ssl_check_hostname`; `sentinel_username`, `sentinel_password` for the Sentinels
themselves. Others that redis-py takes are passed over.
"""

import ssl
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio.connection import SSLConnection, parse_url

from gateway.settings import SettingsError

PORT = 6379
SENTINEL_PORT = 26379
HINT = (
    "the Redis URL is malformed: redis://, rediss:// or unix://, "
    "redis+sentinel://host:port,…/service or redis+cluster://host:port,… is needed"
)


class Kind(StrEnum):
    """What kind of Redis it is."""

    SINGLE = "single server"
    SENTINEL = "Sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True)
class Login:
    """How a connection begins. Never shown: it holds the password."""

    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    database: int = 0
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True)
class Address:
    """A parsed URL."""

    kind: Kind
    login: Login
    nodes: tuple[tuple[str, int], ...] = ()
    """Servers, Sentinels, or nodes to learn a cluster from."""
    path: str | None = None
    service: str = ""
    sentinel_login: Login = Login()
    sentinel_tls: dict[str, Any] = field(default_factory=dict)
    """redis-py's TLS options for the Sentinels; empty without TLS."""


def parse_redis_url(url: str) -> Address:
    """Read a URL. Raises SettingsError, which never shows any of it."""
    try:
        return _parse(url)
    except (ValueError, TypeError, OSError, LookupError, RecursionError):
        # From None: the causes quote what they could not read, password included.
        raise SettingsError(HINT) from None


def _parse(url: str) -> Address:
    scheme, _, rest = url.partition("://")
    plain, _, kind = scheme.partition("+")
    if kind and (plain not in ("redis", "rediss") or kind not in ("sentinel", "cluster")):
        raise ValueError(scheme)
    parts = urlsplit(f"{plain}://{rest}")
    if plain == "unix":
        options = _options(url)
        return Address(Kind.SINGLE, _login(options), path=options["path"])
    userinfo, at, places = parts.netloc.rpartition("@")
    default = SENTINEL_PORT if kind == "sentinel" else PORT
    nodes = tuple(_node(place, default) for place in places.split(","))
    service, _, database = parts.path.strip("/").partition("/")
    if kind != "sentinel":
        service, database = "", parts.path.strip("/")
    # The first node stands for all: redis-py reads the rest of the URL.
    host, port = nodes[0]
    shown = f"[{host}]" if ":" in host else host
    options = _options(f"{plain}://{userinfo}{at}{shown}:{port}/{database}?{parts.query}")
    if database and not database.isdigit():
        raise ValueError("database")
    login = _login(options)
    if kind == "sentinel":
        if not service:
            raise ValueError("service")
        own = Login(
            options.get("sentinel_username"), options.get("sentinel_password"), tls=login.tls
        )
        tls = {"ssl": True, **_tls_options(options)} if login.tls else {}
        return Address(
            Kind.SENTINEL, login, nodes, service=service, sentinel_login=own, sentinel_tls=tls
        )
    if kind == "cluster":
        if login.database:
            raise ValueError("a cluster has only database 0")
        return Address(Kind.CLUSTER, login, nodes)
    if len(nodes) > 1:
        raise ValueError("several servers")
    return Address(Kind.SINGLE, login, nodes)


def _options(url: str) -> dict[str, Any]:
    return dict(parse_url(url))


def _node(place: str, default_port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{place}")
    if parts.username is not None or parts.path or not (parts.hostname or place in ("", ":")):
        raise ValueError("node")
    port = parts.port
    if port == 0:
        raise ValueError("port")
    return parts.hostname or "localhost", port or default_port


def _login(options: dict[str, Any]) -> Login:
    tls = None
    if options.get("connection_class") is SSLConnection:
        host = options.get("host", "localhost")
        tls = SSLConnection(host=host, **_tls_options(options)).ssl_context.get()
    return Login(
        username=options.get("username"),
        password=options.get("password"),
        database=int(options.get("db", 0)),
        tls=tls,
    )


def _tls_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name.startswith("ssl_")}
