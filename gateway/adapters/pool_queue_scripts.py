"""The scripts of a pool's queue: `lua_queue/*.lua`, joined, with the specification's constants."""

import re
from functools import cache, lru_cache
from importlib.resources import files

from gateway.domain.queue import (
    bypass,
    capacity,
    fairness,
    lines,
    order,
    pool,
    pool_state,
    prediction,
    tickets,
)
from gateway.domain.queue.tickets import PlaceState

KEYS = (
    *("tickets", "due", "takeable", "tenants", "parked", "promote"),
    *(f"{name}:{band}" for name in ("order", "turns", "idle", "since") for band in "01"),
    *("lots", "new:0", "new:1"),
)
STORED_MS = 7_200_000
STORED_AGAIN_MS = 1_800_000
POOLS_KEPT = 1024

_FIRST = ("head", "counters", "lines", "rooms", "reap", "is_open")
_INSIDE = {
    "grant_all": ("charge", "in_turn", "order", "grant"),
    "take_back": ("in_turn", "take_back"),
}
"""Functions that are seldom needed: what they are made of is only made where they are called."""
_WAITS = ("remembered", "waits")
_MORE = {
    "enter": (*_WAITS, "answers", "taken_up", "wish"),
    "renew": ("answers",),
    "take_up": ("taken_up",),
    "again": (*_WAITS, "answers"),
    "leave": ("first_parked",),
    "unpark": ("first_parked", *_WAITS),
    "resume": ("remembered", "activate", "charge", "wish"),
    "observe": ("answers",),
}
"""What one script needs besides: each function costs every script that has it."""
_POOL = (*("LAST", "SHIFT", "KEPT_UNTIL", "CREDIT", "SPEED_COST", "SPEED_COST_MS", "RUNNING_COST"),)
_POOL_BAND = ("DEPARTED", "IDLE", "COUNT", "TOKENS", "NEED", "BYPASS_TOKENS", "BYPASS_KEPT")
"""Of interactive, then of batch."""
_POOL_BEHIND = ("BYPASS_ID", "BYPASS_WORKER", "BYPASS_REST", "BYPASS_RESTS")
"""Kept elsewhere. Behind the numbers, as many places apart for each band as those are."""
_NEWS_BAND = ("LEVEL", "NEW", "TURN", "EXPECTED")
"""Where newcomers stand, how many wait, the place in line of the last that came; what runs was
charged."""
_TENANT_BAND = ("COUNT", "TOKENS", "WEIGHT", "RUNNING", "COUNTER")
"""Of interactive, then of batch, behind how many of it wait, parked ones included."""
_TICKET = (
    *("STATE", "BAND", "SEQUENCES", "NEED", "COST", "WEIGHT", "ENTERED", "DEADLINE", "PROMOTE"),
    *("TAKEN_BACK", "GRANTED", "IS_FLOOR"),
)
_TICKET_NAMES = ("TENANT", "GATEWAY", "WORKER", "ID", "LOT")
_ROOM = (
    *("ID", "SEQUENCES_MAX", "BATCH_MAX", "TOKENS_MAX", "WELL_UNTIL", "RUNNING", "TOKENS"),
    *("BACK", "BACK_SEQUENCES", "BACK_TOKENS", "MAY_SEQUENCES", "MAY_TOKENS"),
)
"""Of each worker: BACK was asked back and is not free yet, MAY may be asked back."""
_POOL_FIELDS = len(_POOL) + 2 * len(_POOL_BAND)
_TENANT_FIELDS = 1 + 2 * len(_TENANT_BAND)
_WAITING = max(PlaceState) + 1


def _doubles(count: int) -> str:
    return f"'<{'d' * count}'"


CONSTANTS = {
    **{f"P_{name}": at for at, name in enumerate((*_POOL, *_POOL_BAND), 1)},
    **{f"N_{name}": at for at, name in enumerate(_NEWS_BAND, 1)},
    "OF_BAND_N": len(_NEWS_BAND),
    **{f"T_{name}": at for at, name in enumerate(_TENANT_BAND, 2)},
    **{f"K_{name}": at for at, name in enumerate((*_TICKET, *_TICKET_NAMES), 1)},
    **{f"R_{name}": at for at, name in enumerate(_ROOM, 1)},
    **{f"S_{state.name}": int(state) for state in PlaceState},
    "OF_BAND_P": len(_POOL_BAND),
    "OF_BAND_T": len(_TENANT_BAND),
    **{f"P_{name}": at for at, name in enumerate(_POOL_BEHIND, _POOL_FIELDS + 1)},
    "POOL_FIELDS": _POOL_FIELDS,
    "POOL_FORMAT": _doubles(_POOL_FIELDS),
    "ROOM_FIELDS": len(_ROOM),
    "ROOM_FORMAT": _doubles(len(_ROOM) - 1),
    "T_OWN": _TENANT_FIELDS + 1,
    "TENANT_BYTES": 8 * _TENANT_FIELDS,
    "TENANT_FIELDS": _TENANT_FIELDS,
    "TENANT_FORMAT": _doubles(_TENANT_FIELDS),
    "TICKET_FIELDS": len(_TICKET),
    "TICKET_FORMAT": _doubles(len(_TICKET)),
    "WAITING_STATE": _WAITING,
    "PARKED_STATE": _WAITING + 1,
    "CREDIT": order.CREDIT,
    "FORGOTTEN_MS": capacity.FORGOTTEN_MS,
    "GRANTED_AT_ONCE": pool_state.GRANTED_AT_ONCE,
    "IDLED_AT_MOST": bypass.IDLED_AT_MOST,
    "KEPT_MS": bypass.KEPT_MS,
    "STORED_AGAIN_MS": STORED_AGAIN_MS,
    "STORED_MS": STORED_MS,
    "LOOKED_AT": order.LOOKED_AT,
    "MEMORY": prediction.MEMORY,
    "OF_A_TENANT": lines.OF_A_TENANT,
    "REAPED_AT_ONCE": pool_state.REAPED_AT_ONCE,
    "TOO_LONG_BY": pool.TOO_LONG_BY,
    "TAKE_UP_MS": pool_state.TAKE_UP_MS,
    "TAKEN_BACK_FOR": order.TAKEN_BACK_FOR,
    "TAKEN_BACK_MAX": tickets.TAKEN_BACK_MAX,
    "TAKEN_BACK_WAIT_MS": tickets.TAKEN_BACK_WAIT_MS,
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
    source = "".join(map(_text, _FIRST))
    for function, parts in _INSIDE.items():
        source += f"local function {function}(asking)\n{''.join(map(_text, parts))}end\n"
    source += "".join(map(_text, ("dispatch", *_MORE.get(name, ()), name)))
    return _NAME.sub(lambda found: str(CONSTANTS.get(found[0], found[0])), source)


@lru_cache(maxsize=POOLS_KEPT)
def keys_of(pool_name: str) -> tuple[str, ...]:
    """A pool's keys, all in one hash slot whatever its name: a brace in it would end the tag."""
    tag = pool_name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return tuple(f"weir:{{pool:{tag}}}:{key}" for key in KEYS)


def _text(part: str) -> str:
    return _COMMENT.sub("", _file(part))


def _file(part: str) -> str:
    return (files("gateway.adapters") / "lua_queue" / f"{part}.lua").read_text()
