"""Whether Postgres lacks what it is known to have held: it was restored from a backup, or lost its
last moments in a failover."""

from collections.abc import Mapping
from typing import NamedTuple


class Boot(NamedTuple):
    """A boot of a gateway's journal."""

    gateway_id: str
    number: int


class AuditHead(NamedTuple):
    """The newest entry of the audit log, with the hash of the chain up to it."""

    id: int
    hash: str


class Restored(NamedTuple):
    """Changes of administrators are gone: the audit log had come to `lost_id`, and the one that is
    there ended with `head_id` when that was found, at `found_ms` of the store's time."""

    found_ms: int
    head_id: int
    lost_id: int


def lacking(remembered: Mapping[Boot, int], held: Mapping[Boot, int]) -> dict[Boot, int]:
    """Boots of which Postgres has held more numbers than it does, and up to which."""
    return {boot: seq for boot, seq in remembered.items() if held.get(boot, 0) < seq}


def restored(
    known: Restored | None,
    remembered: AuditHead | None,
    *,
    head: AuditHead,
    hash_there: str | None,
    now_ms: int,
) -> Restored | None:
    """What is known of a restore after a look at the log that ends with `head` and has `hash_there`
    for the entry that was its last one before (None: it lacks that). What was found before stays,
    until somebody confirms it."""
    if remembered is None or hash_there == remembered.hash:
        return known
    if known is None:
        return Restored(now_ms, head.id, remembered.id)
    return Restored(known.found_ms, min(known.head_id, head.id), max(known.lost_id, remembered.id))
