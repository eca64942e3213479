"""Connections to a Redis-compatible server."""

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from gateway.settings import SettingsError


def connect_redis(url: str, *, timeout_ms: int, connections_max: int = 64) -> Redis:
    """A client without retries of its own: the caller decides what a failure means.

    Connecting, and waiting for a free connection, fail after `timeout_ms`. A call's own deadline is
    its caller's; the socket's is twice `timeout_ms`, so that it only ends what nobody waits for.
    Connects when it is first used. Raises SettingsError where the URL is none.
    """
    seconds = timeout_ms / 1000
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=connections_max,
            timeout=seconds,
            socket_timeout=2 * seconds,
            socket_connect_timeout=seconds,
            retry=Retry(NoBackoff(), 0),
            decode_responses=False,
        )
    except ValueError:
        raise SettingsError("the Redis URL is malformed") from None
    return Redis(connection_pool=pool)
