"""Real servers: three primaries that the tests of a session share, and others to be killed."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis_cluster import Cluster, Watched, running_cluster, running_sentinel, until

from gateway.adapters.redis import RedisClient, connect_redis

TIMEOUT_MS = 1000
"""Of clients that are not there to be kept waiting: a busy machine is no finding."""


@pytest.fixture(scope="session")
def three_primaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The session's cluster."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(three_primaries: Cluster) -> Cluster:
    """The session's cluster, empty and whole. One test at a time has it."""
    until(three_primaries.is_settled, "the cluster is whole again")
    three_primaries.forget_everything()
    return three_primaries


@pytest.fixture
def replicated(tmp_path: Path) -> Iterator[Cluster]:
    """Three primaries with a replica each, of this test's own."""
    with running_cluster(tmp_path / "replicated", replicas=True) as cluster:
        yield cluster


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """A primary with a replica, watched by a Sentinel."""
    with running_sentinel(tmp_path / "watched") as servers:
        yield servers


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[RedisClient]:
    """A client of the session's cluster."""
    made = connect_redis(cluster.url, timeout_ms=TIMEOUT_MS)
    yield made
    await made.aclose()
