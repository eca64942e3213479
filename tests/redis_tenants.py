"""Tenants spread over a cluster's shards, and what a ledger is asked for them."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from redis_cluster import Cluster

from gateway.adapters.ledger import RedisLedger
from gateway.domain.admission import Demand, Granted
from gateway.domain.scopes import ScopeLimits
from gateway.serving.ports import HeldLease, LedgerUnavailable

GRANTED_WITHIN_S = 15.0
KEY, MODEL = "k", "m"
SCOPES = ("tenant", "key:k", "model:m", "key:k/model:m")


def tenant_of_each_shard(cluster: Cluster) -> list[str]:
    """One tenant id for each primary, in their order."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < len(cluster.primaries):
        found.setdefault(cluster.owner(f"t{number}").port, f"t{number}")
        number += 1
    return [found[server.port] for server in cluster.primaries]


def limits(max_sequences: int | None = None, tpm: int | None = None) -> tuple[ScopeLimits, ...]:
    """Limits of the tenant's scope; the others have none."""
    none = [ScopeLimits(name, 1, None, None, None) for name in SCOPES[1:]]
    return ScopeLimits("tenant", 1, max_sequences, tpm, None), *none


@dataclass
class Asked:
    """How one decision ended, and how long it took."""

    granted: bool | None
    """None where the store did not decide."""
    took_s: float


async def decide(
    ledger: RedisLedger, tenant: str, scopes: Sequence[ScopeLimits] | None = None, tokens: int = 10
) -> tuple[Asked, HeldLease | None]:
    """Ask for one sequence."""
    request_id = uuid4().hex
    began = time.monotonic()
    try:
        reply = await ledger.acquire(
            tenant, KEY, MODEL, Demand(request_id, 1, tokens, tokens), scopes or limits()
        )
    except LedgerUnavailable:
        return Asked(None, time.monotonic() - began), None
    took_s = time.monotonic() - began
    if not isinstance(reply, Granted):
        return Asked(False, took_s), None
    lease = HeldLease(
        request_id=request_id,
        tenant_id=tenant,
        key_id=KEY,
        model=MODEL,
        sequences=1,
        reserved_tokens=reply.reserved_tokens,
        second=reply.second,
        scope_names=SCOPES,
    )
    return Asked(True, took_s), lease


async def ask_until_granted(ledger: RedisLedger, tenant: str) -> list[Asked]:
    """Decisions one after the other, up to the first that grants."""
    outcomes = []
    deadline = time.monotonic() + GRANTED_WITHIN_S
    while time.monotonic() < deadline:
        asked, _ = await decide(ledger, tenant)
        outcomes.append(asked)
        if asked.granted:
            return outcomes
        await asyncio.sleep(0.01)
    raise AssertionError(f"nothing granted within {GRANTED_WITHIN_S} s")
