"""Connections to a Redis-compatible server."""

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


def connect_redis(url: str, *, timeout_ms: int, connections_max: int = 64) -> Redis:
    """A client whose every call fails after `timeout_ms`, connecting included, without retries of
    its own: the caller decides what a failure means. Connects when it is first used."""
    seconds = timeout_ms / 1000
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=connections_max,
        timeout=seconds,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        retry=Retry(NoBackoff(), 0),
        decode_responses=False,
    )
    return Redis(connection_pool=pool)
