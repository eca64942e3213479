"""REC-7: what Postgres has been given once adds nothing when it is given again, and lies there as
it was given."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from uuid import UUID

from billing.domain.reconciliation.findings import Check, Finding, Verdict, terms

SHOWN_CHARACTERS_MAX = 80
"""Of each value that is told."""
_UNITS = {"_tokens": "tokens", "_at": "ms", "_ms": "ms", "_us": "us", "_pico": "pico"}
"""Of columns whose names end so: amounts, which have a difference."""
_COUNTS = ("sequences", "attempts")


@dataclass(frozen=True)
class Written:
    """A record that a replay has written, before it was rolled back."""

    request_id: UUID
    gateway_id: str
    tokens: int


@dataclass(frozen=True)
class Altered:
    """A column of a final row, or of an attempt of it, that is not what its journal says, which no
    replay mends. Values are as text, None where there is none."""

    request_id: UUID
    gateway_id: str
    column: str
    stored: str | None
    told: str | None
    of: str | None = None
    """Which attempt, in words; None: it is of the record."""


def check_replay(
    remains: Sequence[Written | Altered], *, replayed: int, not_shipped: int
) -> Verdict:
    """REC-7 of `replayed` records that are said to be in Postgres; `not_shipped` others of the same
    journals have yet to come and were left out."""
    return Verdict(
        Check.REPLAY,
        terms(replayed=replayed, not_shipped_yet=not_shipped),
        tuple(_of(each) for each in remains),
    )


def _of(each: Written | Altered) -> Finding:
    if isinstance(each, Written):
        return Finding(
            Check.REPLAY,
            each.gateway_id,
            each.request_id,
            max(1, each.tokens),
            "tokens" if each.tokens else "records",
            "a replay writes it: its row is missing, or another than the one that was shipped",
        )
    size, unit = _size(each)
    column = each.column if each.of is None else f"{each.column} of {each.of}"
    return Finding(
        Check.REPLAY,
        each.gateway_id,
        each.request_id,
        size,
        unit,
        f"{column} is {_shown(each.stored)} in its row and {_shown(each.told)} in its journal",
    )


def _size(each: Altered) -> tuple[int, str]:
    """By how much it differs, where it is an amount in both."""
    units = [unit for end, unit in _UNITS.items() if each.column.endswith(end)]
    units += [each.column] if each.column in _COUNTS else []
    if not units or each.stored is None or each.told is None:
        return 1, "records"
    return ceil(abs(Decimal(each.stored) - Decimal(each.told))), units[0]


def _shown(value: str | None) -> str:
    return "nothing" if value is None else repr(value[:SHOWN_CHARACTERS_MAX])
