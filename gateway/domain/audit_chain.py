"""The chain of the audit log: what each entry's hash is made of, and where a chain does not fit.

An entry's hash is SHA-256 over the hash of the entry before it and over the entry's own fields as
text, each with its length, so that no two entries have one form. The database makes the hashes;
this is the same rule a second time, so that nobody who can change the database can change what it
is checked against. Pure.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

FORM = 1
"""The form that entries have now; each says its own, and is part of what is hashed."""
NO_HASH = "0" * 64
"""What stands in the place of an entry before the first."""
HASHED_FIELDS = (
    "id",
    "at",
    "actor",
    "action",
    "subject_kind",
    "subject_id",
    "tenant_id",
    "change_id",
    "before",
    "after",
)
"""What is hashed, in this order; empty where there is none. `at` is UTC to the microsecond as
`2026-11-30T12:00:00.000000Z`, `before` and `after` are the texts of the database's jsonb."""


@dataclass(frozen=True)
class ChainedEntry:
    """An entry as it is hashed: `fields` are the texts of HASHED_FIELDS, the hash is in hex."""

    id: int
    form: int
    fields: tuple[str, ...]
    hash: str


@dataclass(frozen=True)
class Head:
    """An entry and its hash: with it everything up to there is known, wherever it is kept."""

    id: int
    hash: str


def entry_hash(previous: str, form: int, fields: Iterable[str]) -> str:
    """The hash, in hex, of the entry with these texts that follows the one with hash `previous`."""
    parts = [f"weir-audit-{form}\n{previous}\n"]
    parts += [f"{len(text.encode())}:{text}\n" for text in fields]
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def first_misfit(previous: str, entries: Iterable[ChainedEntry]) -> ChainedEntry | None:
    """The first of `entries`, in the order of the chain, whose hash is not that of its fields after
    the entry before; None where all fit."""
    for entry in entries:
        if entry.form != FORM or entry.hash != entry_hash(previous, entry.form, entry.fields):
            return entry
        previous = entry.hash
    return None
