"""Connections to Postgres: any `postgresql://` URL that psql takes, through asyncpg.

asyncpg parses the URL itself (several hosts, sockets, TLS, passfile, services), so that it means
the same here as in psql; SQLAlchemy only pools what it opens.
"""

import re
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
import msgspec
from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from gateway.settings import SettingsError

CONNECT_TIMEOUT_S = 2.0
HOST_AND_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d{0,5})?")
LIBPQ_ONLY = frozenset(
    {
        "channel_binding",
        "client_encoding",
        "connect_timeout",
        "fallback_application_name",
        "gssdelegation",
        "gssencmode",
        "hostaddr",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "load_balance_hosts",
        "max_protocol_version",
        "min_protocol_version",
        "requirepeer",
        "sslcertmode",
        "sslcompression",
        "sslsni",
        "tcp_user_timeout",
    }
)
"""Parameters of libpq that asyncpg would pass on to the server, which refuses them."""


def async_engine(
    database_url: str,
    *,
    pool_size: int = 5,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    pooled: bool = True,
) -> AsyncEngine:
    """An engine for `database_url`, which is not contacted yet. Dispose of it when done.

    At most `pool_size` connections are open at once; `pooled=False` opens one for each use.
    A failed statement's parameters never reach an error message. Raises SettingsError where the
    URL is not one of Postgres.
    """
    connect = _connector(database_url, connect_timeout_s)
    if not pooled:
        return create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connect,
            poolclass=NullPool,
            hide_parameters=True,
            json_serializer=_json_text,
            json_deserializer=msgspec.json.decode,
        )
    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        pool_size=pool_size,
        max_overflow=0,
        pool_recycle=1800,
        hide_parameters=True,
        json_serializer=_json_text,
        json_deserializer=msgspec.json.decode,
    )


async def ping(engine: AsyncEngine) -> None:
    """Make one round trip to Postgres; raises what the driver raises where it cannot."""
    async with engine.connect() as db:
        await db.execute(text("SELECT 1"))


def failure_name(error: BaseException) -> str:
    """A failure's kind and code, without what the driver quotes."""
    origin = getattr(error, "orig", None) or error
    code = getattr(origin, "sqlstate", None)
    return f"{type(origin).__name__} {code}" if code else type(origin).__name__


def _connector(database_url: str, timeout_s: float) -> Callable[[], Awaitable[asyncpg.Connection]]:
    dsn = _asyncpg_dsn(database_url)

    async def connect() -> asyncpg.Connection:
        return await asyncpg.connect(dsn, timeout=timeout_s)

    return connect


def _asyncpg_dsn(database_url: str) -> str:
    try:
        parts = urlsplit(database_url)
    except ValueError:
        raise SettingsError("the database URL is malformed") from None
    if not all(map(HOST_AND_PORT.fullmatch, parts.netloc.rpartition("@")[2].split(","))):
        raise SettingsError("the database URL is malformed: host or port")
    scheme = parts.scheme.partition("+")[0]
    if scheme not in ("postgresql", "postgres"):
        raise SettingsError("the database URL must begin with postgresql://")
    query = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if name not in LIBPQ_ONLY
    ]
    return urlunsplit((scheme, parts.netloc, parts.path, urlencode(query), ""))


def _json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()
