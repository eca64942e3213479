"""The Lua scripts execute the Python specification on a cluster too, on whichever shard.

A client for each tenant, as a gateway has, so each example learns the cluster's map anew.
"""

import pytest
from ledger_parity import run_parity
from redis_cluster import Cluster

from gateway.adapters.redis import RedisClient, connect_redis

EXAMPLES = 40


@pytest.mark.timeout(300)
def test_r13_lua_executes_the_specification(cluster: Cluster) -> None:
    """R13: any sequence of operations, clock jumps, losses and script flushes: the same replies
    and the same state from both, with no two keys of a script in different slots."""

    async def flush_scripts(_: RedisClient) -> None:
        for server in cluster.primaries:
            server.ask("SCRIPT", "FLUSH")

    run_parity(
        lambda: connect_redis(cluster.url, timeout_ms=5000), flush_scripts, examples=EXAMPLES
    )
