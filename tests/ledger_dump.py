"""Everything that the ledger keeps of a tenant, in the specification's terms, for comparison."""

import struct
from collections.abc import Iterator
from typing import Any

from gateway.adapters.ledger_records import PICO_PER_UNIT
from gateway.adapters.ledger_scripts import KEYS
from gateway.adapters.redis import RedisClient
from gateway.domain.admission import SCOPE_KEEP_S, Lease, TenantState

DUMP = """
return {
  redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'),
  redis.call('HGETALL', KEYS[3]), redis.call('HGETALL', KEYS[4]), redis.call('TTL', KEYS[1]),
  redis.call('TTL', KEYS[2]),
}
"""
LOSE = "for i = tonumber(ARGV[1]), #KEYS do redis.call('DEL', KEYS[i]) end return 1"
LAPSED, FORGET = 10**15, 2 * 10**15
IS_MARKED = 2**40

Kept = dict[str, Any]


def keys_of(tenant_id: str) -> list[str]:
    return [f"weir:{{{tenant_id}}}:{name}" for name in KEYS]


async def lose(client: RedisClient, tenant_id: str, *, with_money: bool) -> None:
    """Delete a tenant's keys; all of them, or those that go away by themselves when nobody uses
    them for hours."""
    keys = keys_of(tenant_id)
    if not with_money:
        keys = [key for key in keys if not key.endswith(":money")]
    await client.register_script(LOSE)(keys, [1])


async def kept_by_ledger(client: RedisClient, tenant_id: str, now_ms: int) -> Kept:
    """What Redis holds; without what is past its time and only not removed yet."""
    reply = await client.register_script(DUMP)(keys_of(tenant_id), [])
    book, due, money, recent, *ttls = reply
    assert all(0 < ttl <= 7200 for ttl in ttls) or not book, f"keys without an end: {ttls}"
    scores = _scores(due)
    assert scores.pop(b"@", 2**53) == 2**53
    forget = {name: at - FORGET for name, at in scores.items() if at >= FORGET}
    expiries = {name: at % LAPSED for name, at in scores.items() if at < FORGET}
    kept: Kept = {"leases": {}, "lapsed": {}, "settled": {}, "scopes": {}, "stepped": None}
    for name, record in _fields(book).items():
        if name == b"@":
            kept["complete"] = tuple(map(int, struct.unpack_from("<2d", record)))
            continue
        if name == b"!":
            kept["stepped"] = tuple(map(int, struct.unpack("<4d", record)))
            continue
        if name.startswith(b"@"):
            assert name in forget, "a scope that nobody looks at again"
            kept["scopes"][name[1:].decode()] = _scope(record)
        elif record[:1] == b"S":
            kept["settled"][name.decode()] = forget[name]
            assert struct.unpack("<d", record[1:]) == (forget[name],)
        elif record[:1] == b"L":
            assert scores[name] < LAPSED
            kept["leases"][name.decode()] = (*_lease(record[1:]), expiries.pop(name))
        else:
            assert record[:1] == b"P"
            assert LAPSED <= scores[name] < FORGET
            assert struct.unpack("<d", record[1:9]) == (expiries[name],)
            kept["lapsed"][name.decode()] = (*_lease(record[9:]), expiries.pop(name))
    assert not expiries, "leases in an index, and in no record"
    kept["months"] = _months(_fields(money), _fields(recent))
    return current(kept, now_ms)


def kept_by_specification(state: TenantState, now_ms: int) -> Kept:
    """The same of the specification's state."""
    kept: Kept = {
        "leases": {rid: _shown(lease) for rid, lease in state.leases.items()},
        "lapsed": {rid: _shown(lease) for rid, lease in state.lapsed.items()},
        "settled": dict(state.settled),
        "scopes": {},
        "months": {},
        "stepped": None,
    }
    if state.beginning is not None:
        kept["complete"] = (state.beginning.sequences_ms, state.beginning.tokens_ms)
    if state.stepped is not None:
        was = state.stepped.beginning
        kept["stepped"] = (
            state.stepped.reached_ms, state.stepped.ttl_ms, was.sequences_ms, was.tokens_ms,
        )  # fmt: skip
    for name, book in state.scopes.items():
        limits, window = book.limits, book.window
        kept["scopes"][name] = {
            "limits": (
                limits.version, limits.max_sequences, limits.tpm, limits.rpm, limits.budget_pico,
            ),
            "running": state.running(name),
            "sums": (window.tokens, window.requests),
            "reached": window.reached_s,
            "seen": book.seen_s,
            "cells": {s: (cell.tokens, cell.requests) for s, cell in window.cells.items()},
        }  # fmt: skip
    for name, month in state.months.items():
        funds = {s: (f.spent_pico, f.reserved_pico) for s, f in month.money.items()}
        settled = set(month.settled)
        kept["months"][name] = (month.at_ms, month.known, _without_zeros(funds), settled)
    return current(kept, now_ms)


def current(kept: Kept, now_ms: int) -> Kept:
    """Without what is over, but was not removed since nothing was asked."""
    kept["lapsed"] = {rid: lease for rid, lease in kept["lapsed"].items() if lease[-1] > now_ms}
    kept["settled"] = {rid: until for rid, until in kept["settled"].items() if until > now_ms}
    kept["scopes"] = {
        name: scope
        for name, scope in kept["scopes"].items()
        if scope["running"] or scope["seen"] > now_ms // 1000 - SCOPE_KEEP_S
    }
    return kept


def _shown(lease: Lease) -> tuple[object, ...]:
    return (
        lease.sequences, lease.tokens, lease.second, lease.cost_pico, lease.month, lease.scopes,
        lease.expires_at_ms,
    )  # fmt: skip


def _lease(record: bytes) -> tuple[object, ...]:
    charged_ms, sequences, tokens, cost, cost_pico = map(int, struct.unpack_from("<5d", record))
    month, key, model = record[40:].decode().split("|", 2)
    scopes = ("tenant", f"key:{key}", f"model:{model}", f"key:{key}/model:{model}")
    return sequences, tokens, charged_ms // 1000, cost * PICO_PER_UNIT + cost_pico, month, scopes


def _scope(record: bytes) -> dict[str, object]:
    version, sequences, tpm, rpm, budget, pico = map(int, struct.unpack_from("<6d", record))
    running, tokens, requests, seen, oldest, newest, *newest_cell = map(
        int, struct.unpack_from("<8d", record, 48)
    )
    reached, is_wide, tail_at = 0, 0, 112
    if newest >= IS_MARKED:
        reached, is_wide = map(int, struct.unpack_from("<2d", record, tail_at))
        newest, tail_at = newest - IS_MARKED, tail_at + 16
        assert reached or is_wide, "marked for nothing: never usual again"
    cells = dict(_older(record[tail_at:], newest, is_wide=bool(is_wide)))
    if newest:
        cells[newest] = tuple(newest_cell)
    assert oldest == min(cells, default=0), "what ages next is not what is said"
    limits = [None if limit < 0 else limit for limit in (sequences, tpm, rpm)]
    return {
        "limits": (version, *limits, None if budget < 0 else budget * PICO_PER_UNIT + pico),
        "running": running,
        "sums": (tokens, requests),
        "reached": reached,
        "seen": seen,
        "cells": cells,
    }


def _older(packed: bytes, newest: int, *, is_wide: bool) -> Iterator[tuple[int, tuple[int, ...]]]:
    size = 13 if is_wide else 6
    for at in range(0, len(packed), size):
        second = newest - (newest - packed[at]) % 256
        if is_wide:
            tokens, requests = struct.unpack_from("<di", packed, at + 1)
            yield second, (int(tokens), requests)
        else:
            counts = packed[at + 1 : at + size]
            yield (
                second,
                (int.from_bytes(counts[:3], "little"), int.from_bytes(counts[3:], "little")),
            )


def _months(money: dict[bytes, bytes], recent: dict[bytes, bytes]) -> Kept:
    months = {}
    for name, record in money.items():
        if b"@" not in name:
            at_ms, known = struct.unpack("<2d", record)
            of = {
                field.decode().split("@", 1)[1]: _fund(packed)
                for field, packed in money.items()
                if field.startswith(name + b"@")
            }
            settled = {rid.decode() for rid, month in recent.items() if month == name}
            months[name.decode()] = (int(at_ms), known == 1, _without_zeros(of), settled)
    return months


def _fund(packed: bytes) -> tuple[int, int]:
    spent, spent_pico, reserved, reserved_pico = map(int, struct.unpack("<4d", packed))
    assert min(spent, spent_pico, reserved, reserved_pico) >= 0
    assert max(spent_pico, reserved_pico) < PICO_PER_UNIT
    return spent * PICO_PER_UNIT + spent_pico, reserved * PICO_PER_UNIT + reserved_pico


def _without_zeros(funds: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    return {scope: fund for scope, fund in funds.items() if fund != (0, 0)}


def _fields(flat: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _scores(flat: list[bytes]) -> dict[bytes, int]:
    return {name: int(float(score)) for name, score in _fields(flat).items()}
