"""What the live page makes of the live view: order, sums and what is against what. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gateway.console.figures import sum_known
from gateway.console.worker_rows import WorkerState
from gateway.domain.tenant import RequestClass

Row = Mapping[str, Any]
TENANTS_SHOWN = 50
AGAINST_LIMIT = (
    ("sequences_running", "max_sequences"),
    ("tokens_last_minute", "tpm"),
    ("requests_last_minute", "rpm"),
    ("sequences_queued", "max_queued"),
)


class TenantList(NamedTuple):
    """Tenants that hold something or wait: those that are shown, how many match, how many are."""

    rows: list[Row]
    matching: int
    active: int


def tenants_shown(
    tenants: Sequence[Row], search: str = "", *, most: int = TENANTS_SHOWN
) -> TenantList:
    """Those whose id or name has `search` in it, who are nearest to a limit first."""
    wanted = search.casefold()
    found = [
        tenant
        for tenant in tenants
        if wanted in tenant["id"].casefold() or wanted in tenant["name"].casefold()
    ]
    found.sort(key=_rank)
    return TenantList(found[:most], len(found), len(tenants))


def limit_permille(tenant: Row) -> int:
    """How much of its tightest limit a tenant uses; over 1000 where it uses more, 0 where it has
    none. A limit of 0 is all used up for who uses something or waits, and nobody else's."""
    waits = bool(tenant["sequences_queued"])
    shares = [
        tenant[used] * 1_000 // tenant[limit]
        if tenant[limit]
        else (1_000 if tenant[used] or waits else 0)
        for used, limit in AGAINST_LIMIT
        if tenant[limit] is not None and tenant[used] is not None
    ]
    return max(shares, default=0)


def _rank(tenant: Row) -> tuple[int, int, int, str]:
    return (
        -limit_permille(tenant),
        -(tenant["sequences_queued"] or 0),
        -tenant["tokens_last_minute"],
        tenant["id"],
    )


def queue_sums(pools: Sequence[Row]) -> dict[str, dict[str, int | None]]:
    """Of each class tokens and requests that wait over all pools; None where one is not known."""
    sums: dict[str, dict[str, int | None]] = {}
    for each in RequestClass:
        name = each.value
        of_class = [
            {"tokens": None, "requests": None}
            if pool["queue"] is None
            else {
                "tokens": pool["queued_tokens"][name],
                "requests": pool["queue"][name]["requests"],
            }
            for pool in pools
        ]
        sums[name] = {key: sum_known(of_class, key) for key in ("tokens", "requests")}
    return sums


def pool_rows(pools: Sequence[Row], workers: Sequence[Row]) -> list[Row]:
    """Pools with how many workers serve them now and how many sequences these hold at most, None
    where one of them has no ceiling yet. One that is nobody's and empty is left out where the
    model's workers are all reserved for a class."""
    rows: list[Row] = []
    for pool in pools:
        own = [
            row for row in workers if (row["model"], row["class"]) == (pool["model"], pool["class"])
        ]
        serving = [
            row for row in own if row["state"] is WorkerState.HEALTHY and not row["draining"]
        ]
        ceilings = [
            {"most": None if row["places"] is None else row["places"]["sequences_max"]}
            for row in serving
        ]
        reserved = any(row["model"] == pool["model"] for row in workers)
        if not own and reserved and _is_idle(pool):
            continue
        rows.append(
            {
                **pool,
                "serving": len(serving),
                "workers": len(own),
                "sequences_max": sum_known(ceilings, "most") if serving else None,
            }
        )
    return rows


def _is_idle(pool: Row) -> bool:
    return (
        pool["sequences_running"] == 0
        and pool["parked"] == 0
        and not any(each["requests"] for each in pool["queue"].values())
    )


def furthest(latency: Sequence[Row] | None, measure: str) -> Row | None:
    """Of all interactive models the one whose last minute was furthest from its target: `p95_ms`,
    `target_ms`, `count`, `model`. None where no request ended in it, or nothing is known."""
    found = [
        {
            "model": each["model"],
            "p95_ms": each["last_minute"][f"{measure}_p95_ms"],
            "count": each["last_minute"][f"{measure}_count"],
            "target_ms": each[f"{measure}_target_ms"],
        }
        for each in latency or ()
        if each["class"] == RequestClass.INTERACTIVE
        and each["last_minute"][f"{measure}_p95_ms"] is not None
    ]
    return max(found, key=lambda each: each["p95_ms"] / each["target_ms"], default=None)


class FallbackUse(NamedTuple):
    """What runs at all hosted providers, and since when the first of them is in use."""

    running: int | None
    since: str | None
    names: list[str]


def fallback_use(hosted: Sequence[Row]) -> FallbackUse:
    """Over all hosted providers; `running` is None where the store did not tell."""
    in_use = [each for each in hosted if each["in_use_since"] is not None]
    return FallbackUse(
        sum_known(hosted, "running"),
        min((each["in_use_since"] for each in in_use), default=None),
        [each["name"] for each in in_use],
    )
