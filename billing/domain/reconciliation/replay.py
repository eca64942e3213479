"""REC-7: what Postgres has been given once adds nothing when it is given again."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from billing.domain.reconciliation.findings import Check, Finding, Verdict, terms


@dataclass(frozen=True)
class Written:
    """A record that a replay has written, before it was rolled back."""

    request_id: UUID
    gateway_id: str
    tokens: int


def check_replay(written: Sequence[Written], *, replayed: int, not_shipped: int) -> Verdict:
    """REC-7 of `replayed` records that are said to be in Postgres; `not_shipped` others of the same
    journals have yet to come and were left out."""
    return Verdict(
        Check.REPLAY,
        terms(replayed=replayed, not_shipped_yet=not_shipped),
        tuple(
            Finding(
                Check.REPLAY,
                each.gateway_id,
                each.request_id,
                max(1, each.tokens),
                "tokens" if each.tokens else "records",
                "a replay writes it: its row is missing, or another than the one that was shipped",
            )
            for each in written
        ),
    )
