"""The scripts of a pool's queue: `lua_queue/*.lua`, joined, with the specification's constants."""

import re
from functools import cache, lru_cache
from importlib.resources import files

from gateway.domain.queue import capacity, fairness, lines, order, pool, prediction, tickets
from gateway.domain.queue.tickets import PlaceState

KEYS = (
    *("tickets", "due", "takeable", "tenants", "parked", "promote"),
    *(f"{name}:{band}" for name in ("order", "turns", "idle", "since") for band in "01"),
)
STORED_MS = 7_200_000
STORED_AGAIN_MS = 1_800_000
POOLS_KEPT = 1024

_PARTS = ("head", "counters", "lines", "rooms", "order", "dispatch", "answers", "wish")
_POOL = (*("LAST", "SHIFT", "KEPT_UNTIL", "CREDIT", "SPEED_COST", "SPEED_COST_MS", "RUNNING_COST"),)
_POOL_BAND = (
    *("DEPARTED", "IDLE", "COUNT", "TOKENS", "NEED"),
    *("BYPASS_ID", "BYPASS_TOKENS", "BYPASS_WORKER", "BYPASS_KEPT"),
)
"""Of interactive, then of batch; then come the workers."""
_TENANT_BAND = ("COUNT", "TOKENS", "WEIGHT", "RUNNING", "COUNTER")
"""Of interactive, then of batch, behind how many of it wait, parked ones included."""
_TICKET = (
    *("STATE", "TENANT", "GATEWAY", "BAND", "SEQUENCES", "NEED", "COST", "WEIGHT", "ENTERED"),
    *("DEADLINE", "PROMOTE", "TAKEN_BACK", "WORKER", "GRANTED", "IS_FLOOR", "ID"),
)
_ROOM = (
    *("ID", "SEQUENCES_MAX", "BATCH_MAX", "TOKENS_MAX", "WELL_UNTIL", "RUNNING", "TOKENS"),
    *("BACK", "BACK_SEQUENCES", "BACK_TOKENS", "MAY_SEQUENCES", "MAY_TOKENS"),
)
"""Of each worker: BACK was asked back and is not free yet, MAY may be asked back."""
_WAITING = max(PlaceState) + 1
CONSTANTS = {
    **{f"P_{name}": at for at, name in enumerate((*_POOL, *_POOL_BAND), 1)},
    **{f"T_{name}": at for at, name in enumerate(_TENANT_BAND, 2)},
    **{f"K_{name}": at for at, name in enumerate(_TICKET, 1)},
    **{f"R_{name}": at for at, name in enumerate(_ROOM, 1)},
    **{f"S_{state.name}": int(state) for state in PlaceState},
    "OF_BAND_P": len(_POOL_BAND),
    "OF_BAND_T": len(_TENANT_BAND),
    "P_ROOMS": len(_POOL) + 2 * len(_POOL_BAND) + 1,
    "WAITING_STATE": _WAITING,
    "PARKED_STATE": _WAITING + 1,
    "CREDIT": order.CREDIT,
    "FORGOTTEN_MS": capacity.FORGOTTEN_MS,
    "GRANTED_AT_ONCE": pool.GRANTED_AT_ONCE,
    "KEPT_MS": order.KEPT_MS,
    "STORED_AGAIN_MS": STORED_AGAIN_MS,
    "STORED_MS": STORED_MS,
    "LOOKED_AT": order.LOOKED_AT,
    "MEMORY": prediction.MEMORY,
    "OF_A_TENANT": lines.OF_A_TENANT,
    "REAPED_AT_ONCE": pool.REAPED_AT_ONCE,
    "TOO_LONG_BY": pool.TOO_LONG_BY,
    "TAKE_UP_MS": pool.TAKE_UP_MS,
    "TAKEN_BACK_FOR": order.TAKEN_BACK_FOR,
    "TAKEN_BACK_MAX": tickets.TAKEN_BACK_MAX,
    "TENANTS_AHEAD": lines.TENANTS_AHEAD,
    "UNITS": fairness.UNITS,
}
_COMMENT = re.compile(r"^\s*(--.*)?\n", re.MULTILINE)
_NAME = re.compile(r"\b[A-Z][A-Z_]*\b")
SCRIPTS = (
    *("enter", "renew", "take_up", "began", "leave", "again", "unpark", "move", "resume"),
    *("report", "tick", "observe"),
)


@cache
def script_source(name: str) -> str:
    """A script whole, without comments; constants are written where they are used."""
    source = "".join(_COMMENT.sub("", _file(part)) for part in (*_PARTS, name))
    return _NAME.sub(lambda found: str(CONSTANTS.get(found[0], found[0])), source)


@lru_cache(maxsize=POOLS_KEPT)
def keys_of(pool_name: str) -> tuple[str, ...]:
    """A pool's keys, all in one hash slot whatever its name: a brace in it would end the tag."""
    tag = pool_name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return tuple(f"weir:{{pool:{tag}}}:{key}" for key in KEYS)


def _file(part: str) -> str:
    return (files("gateway.adapters") / "lua_queue" / f"{part}.lua").read_text()
