"""What a gateway needs of Redis, looked at one by one."""

import time

from redis.exceptions import RedisError

from gateway.adapters.redis import RedisClient
from gateway.adapters.redis_url import Kind
from gateway.preflight import CLOCK_SKEW_MS_MAX, Finding, Status, failed

REDIS_VERSION_MIN = 7


async def check_redis(redis: RedisClient) -> list[Finding]:
    """It answers, runs scripts, keeps what it is told, and its clock agrees. Of a cluster each
    primary is looked at, and the worst of them is told."""
    try:
        servers = await redis.info()
    except (OSError, TimeoutError, RedisError) as error:
        return [failed("redis", error)]
    found = [_check_server(redis.kind, server) for server in servers]
    if redis.kind is Kind.CLUSTER:
        found.append(_summed_up(servers))
    reached = _worst(found)
    if reached.status is Status.FAIL:
        return [reached]
    return [
        reached,
        await _check_scripts(redis),
        _worst([_check_eviction(server.get("maxmemory_policy", "")) for server in servers]),
        _worst([_check_persistence(server.get("aof_enabled") == "1") for server in servers]),
        await _check_clock(redis),
    ]


def _worst(findings: list[Finding]) -> Finding:
    """The one that matters most; of equals the last."""
    order = [Status.OK, Status.WARN, Status.FAIL]
    return max(reversed(findings), key=lambda finding: order.index(finding.status))


def _named(server: dict[str, str]) -> str:
    name = server.get("server_name", "redis")
    version = server.get(f"{name}_version", server.get("redis_version", "0"))
    return f"{name}, version {version}"


def _check_server(kind: Kind, server: dict[str, str]) -> Finding:
    found = f"{kind}, {_named(server)}"
    major = server.get("redis_version", "0").partition(".")[0]
    if not major.isdigit() or int(major) < REDIS_VERSION_MIN:
        return Finding("redis", Status.FAIL, f"{found}; {REDIS_VERSION_MIN} is needed")
    if server.get("role", "master") != "master":
        return Finding("redis", Status.FAIL, f"{found}, but it is a replica and takes no writes")
    if server.get("cluster_enabled") == "1" and kind is not Kind.CLUSTER:
        detail = f"{found}, but it is a node of a cluster: redis+cluster:// is needed"
        return Finding("redis", Status.FAIL, detail)
    return Finding("redis", Status.OK, found)


def _summed_up(servers: list[dict[str, str]]) -> Finding:
    names = ", ".join(sorted({_named(server) for server in servers}))
    return Finding("redis", Status.OK, f"{Kind.CLUSTER} of {len(servers)} primaries, {names}")


async def _check_scripts(redis: RedisClient) -> Finding:
    try:
        await redis.check_scripts()
    except (OSError, TimeoutError, RedisError) as error:
        return failed("redis scripts", error, "EVAL, EVALSHA and SCRIPT LOAD must be allowed")
    try:
        await redis.ping()
    except (OSError, TimeoutError, RedisError) as error:
        return failed("redis scripts", error, "scripts run, but not one that writes")
    return Finding("redis scripts", Status.OK, "EVAL and EVALSHA are allowed")


def _check_eviction(policy: str) -> Finding:
    if policy == "noeviction":
        return Finding("redis eviction", Status.OK, policy)
    shown = policy or "unknown"
    detail = f"maxmemory-policy is {shown}; leases may vanish unless it is noeviction"
    return Finding("redis eviction", Status.WARN, detail)


def _check_persistence(appends: bool) -> Finding:
    if appends:
        return Finding("redis persistence", Status.OK, "appendonly is on")
    detail = "appendonly is off; after a restart what it had is lost, and tenants wait a minute"
    return Finding("redis persistence", Status.WARN, detail)


async def _check_clock(redis: RedisClient) -> Finding:
    try:
        before_ms = time.time() * 1000
        seconds, microseconds = await redis.time()
        after_ms = time.time() * 1000
    except (OSError, TimeoutError, RedisError) as error:
        return failed("clock", error)
    redis_ms = seconds * 1000 + microseconds / 1000
    # Redis looked at its clock somewhere between: only what lies outside is certainly skew.
    skew_ms = max(before_ms - redis_ms, redis_ms - after_ms, 0)
    if skew_ms > CLOCK_SKEW_MS_MAX:
        return Finding("clock", Status.FAIL, f"{skew_ms:.0f} ms off Redis's, over 1000")
    return Finding("clock", Status.OK, f"within {max(1, skew_ms):.0f} ms of Redis's")
