"""Rows written against requests finished: whether the usage records say what the clients were told.

Reads the view `usage_records`, and writes nothing.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg

from backend.loadtest.extra_rows import Between, Row, other_rows, unaccounted
from backend.loadtest.run import Outcome
from backend.loadtest.tenants import tenant_id_of

SHIPPED_WITHIN_S = 30.0
POLL_S = 0.2
IDS_A_QUERY = 5000
SHOWN_MISMATCHES = 5
QUERY = """
SELECT request_id::text, tenant_id, class, outcome, final, prompt_tokens, cached_prompt_tokens,
    output_tokens
FROM usage_records
WHERE admitted_at BETWEEN $1 AND $2 AND request_id = ANY($3::uuid[])
"""


class RowsUnreadable(RuntimeError):
    """The database could not be asked."""


@dataclass(frozen=True)
class RowsCheck:
    """What the comparison found."""

    finished: int
    """Requests that the clients saw end whole."""
    found: int
    """Of these, the ones with a row."""
    written: int
    """Rows of all requests sent, however they ended, and rows that nobody asked for."""
    mismatches: Sequence[str] = field(default_factory=list)
    """One sentence each, by request id."""

    @property
    def holds(self) -> bool:
        """Whether each finished request has its one row, and each row says what was told."""
        return not self.mismatches

    def lines(self) -> list[str]:
        """For people."""
        verdict = "every row agrees" if self.holds else f"{len(self.mismatches)} MISMATCHES"
        first = f"rows: {self.found} of {self.finished} finished requests have one; {verdict}"
        shown = [f"  {each}" for each in self.mismatches[:SHOWN_MISMATCHES]]
        left = len(self.mismatches) - len(shown)
        return [first, *shown, *([f"  and {left} more"] if left else [])]


async def check_rows(
    database_url: str,
    outcomes: Sequence[Outcome],
    *,
    between: Between | None = None,
    within_s: float = SHIPPED_WITHIN_S,
) -> RowsCheck:
    """Compare the rows of these requests with what was told of them, once the rows of all whose
    answer began are there, or after `within_s`. Of those that began and did not end whole a row is
    all that can be asked. Of what else load tests' tenants were admitted `between` the start and
    the end of the run, no row may be left that none of these requests can have asked for. Raises
    RowsUnreadable."""
    ids: set[str] = set()
    finished: dict[str, Outcome] = {}
    begun: set[str] = set()
    mismatches: list[str] = []
    for outcome in outcomes:
        request_id = _id(outcome)
        if request_id in ids:
            mismatches.append(f"{request_id}: the id of two requests")
        if request_id is not None:
            ids.add(request_id)
            if outcome.status == 200:
                begun.add(request_id)
        if outcome.end == "ok" and request_id is None:
            mismatches.append(f"request {outcome.planned.number}: finished without an id")
        elif outcome.end == "ok" and request_id is not None:
            finished[request_id] = outcome
    try:
        connection = await asyncpg.connect(
            database_url, server_settings={"default_transaction_read_only": "on"}
        )
        try:
            rows = await _all_rows(connection, ids, begun | finished.keys(), within_s)
            others = [] if between is None else await other_rows(connection, between, ids)
        finally:
            await connection.close()
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise RowsUnreadable(f"the usage records cannot be read: {error}") from error
    return RowsCheck(
        finished=sum(outcome.end == "ok" for outcome in outcomes),
        found=sum(request_id in rows for request_id in finished),
        written=sum(len(found) for found in rows.values()) + len(others),
        mismatches=[
            *mismatches,
            *compare(finished, rows),
            *(
                f"{request_id}: no row, though its answer began"
                for request_id in sorted(begun - finished.keys() - rows.keys())
            ),
            *unaccounted(others, outcomes),
        ],
    )


def compare(finished: Mapping[str, Outcome], rows: Mapping[str, Sequence[Row]]) -> list[str]:
    """What is wrong with the rows of the requests that finished, a sentence each."""
    wrong = []
    for request_id, outcome in finished.items():
        found = rows.get(request_id, ())
        if len(found) != 1:
            wrong.append(f"{request_id}: {len(found) or 'no'} row{'s' if found else ''}")
            continue
        differing = [
            f"{name} is {found[0][name]!r} for {value!r}"
            for name, value in _told(outcome).items()
            if found[0][name] != value
        ]
        if differing:
            wrong.append(f"{request_id}: {', '.join(differing)}")
    return wrong


def _told(outcome: Outcome) -> dict[str, object]:
    told: dict[str, object] = {
        "outcome": "completed",
        "final": True,
        "tenant_id": tenant_id_of(outcome.planned.tenant),
        "class": outcome.planned.traffic_class,
        "prompt_tokens": outcome.prompt_tokens,
        "output_tokens": outcome.output_tokens,
    }
    if outcome.cached_tokens is not None:
        told["cached_prompt_tokens"] = outcome.cached_tokens
    return told


async def _all_rows(
    connection: asyncpg.Connection, ids: Set[str], awaited: Set[str], within_s: float
) -> dict[str, list[Row]]:
    """The rows of the requests sent, by request id."""
    deadline = time.monotonic() + within_s
    rows: dict[str, list[Row]] = {}
    missing = sorted(ids)
    while True:
        for start in range(0, len(missing), IDS_A_QUERY):
            for row in await _fetched(connection, missing[start : start + IDS_A_QUERY]):
                rows.setdefault(row["request_id"], []).append(dict(row))
        missing = [request_id for request_id in missing if request_id not in rows]
        if not awaited - rows.keys() or time.monotonic() > deadline:
            return rows
        await asyncio.sleep(POLL_S)


async def _fetched(connection: asyncpg.Connection, ids: Sequence[str]) -> list[asyncpg.Record]:
    first, last = _admitted_at(ids[0]), _admitted_at(ids[-1])
    found: list[asyncpg.Record] = await connection.fetch(QUERY, first, last, list(ids))
    return found


def _id(outcome: Outcome) -> str | None:
    try:
        return None if outcome.request_id is None else str(UUID(outcome.request_id))
    except ValueError:
        return None


def _admitted_at(request_id: str) -> datetime:
    """The instant in a UUIDv7, which is the row's `admitted_at`: it names the partition."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=UUID(request_id).int >> 80)
