"""The audit log as a file, as long as it may be: CSV, or JSON lines, in the order of the chain."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from sqlalchemy import Column, ColumnElement, func, select

from gateway.adapters.tables import audit_log
from gateway.administration.audit import AuditFilters, after_place, conditions_of, place_of
from gateway.administration.audit_rows import CHAINED_COLUMNS, chained_from
from gateway.administration.store import Store, verb
from gateway.administration.views import says_of_money
from gateway.domain.audit_chain import HASHED_FIELDS, ChainedEntry

BATCH = 250
COLUMNS = (*HASHED_FIELDS, "form", "hash")
UNSAFE_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
"""What a spreadsheet takes for a formula, and the quote that is put before it."""
_ACTION, _KIND = HASHED_FIELDS.index("action"), HASHED_FIELDS.index("subject_kind")
_BEFORE = HASHED_FIELDS.index("before")


class ExportFormat(StrEnum):
    """What a file of entries can be."""

    CSV = "csv"
    JSONL = "jsonl"


class ExportVerbs(Store):
    """The audit log as a file."""

    async def export_audit(
        self, wanted: ExportFormat, filters: AuditFilters, *, money: bool = True
    ) -> AsyncIterator[bytes]:
        """The file in pieces, the oldest entry first, up to the one that is the last by now. It is
        read in batches, each with a deadline, and holds no transaction open. Without `money`,
        entries about it come without `before` and `after`, and their hashes cannot be checked."""
        write = csv_rows if wanted is ExportFormat.CSV else json_lines
        narrowed = conditions_of(filters)
        last_id = await self._last_id()
        place, after_id = place_of(filters), 0
        head = csv_head() if wanted is ExportFormat.CSV else b""
        while True:
            further = [audit_log.c.id <= last_id, *narrowed]
            if after_id:
                further.append(after_place(place, after_id))
            entries = await self._exported(further, place)
            # What is refused is refused before the first piece, the head of a CSV included.
            if not entries:
                yield head
                return
            after_id = entries[-1].id
            yield head + write(entries if money else map(_without_money, entries))
            head = b""

    @verb
    async def _last_id(self) -> int:
        async with self._reading() as db:
            return await db.scalar(select(func.max(audit_log.c.id))) or 0

    @verb
    async def _exported(
        self, further: Sequence[ColumnElement[bool]], place: Sequence[Column[Any]]
    ) -> Sequence[ChainedEntry]:
        query = select(*CHAINED_COLUMNS).where(*further).order_by(*place).limit(BATCH)
        async with self._reading() as db:
            return [chained_from(row) for row in await db.execute(query)]


def csv_head() -> bytes:
    """The names of the columns."""
    return _csv([COLUMNS])


def csv_rows(entries: Iterable[ChainedEntry]) -> bytes:
    """Entries as rows of CSV. A text that begins as a formula does, or with a quote, has a quote
    before it: taking that away gives the text again."""
    return _csv([*map(safe_cell, each.fields), str(each.form), each.hash] for each in entries)


def json_lines(entries: Iterable[ChainedEntry]) -> bytes:
    """Entries as JSON objects, one a line, with `before` and `after` as the database has them."""
    return b"".join(map(_json_line, entries))


def _json_line(entry: ChainedEntry) -> bytes:
    fields: dict[str, object] = dict(zip(HASHED_FIELDS, entry.fields, strict=True))
    fields["id"] = entry.id
    for name in ("tenant_id", "change_id"):
        fields[name] = fields[name] or None
    for name in ("before", "after"):
        fields[name] = msgspec.Raw(str(fields[name]).encode() or b"null")
    return msgspec.json.encode({**fields, "form": entry.form, "hash": entry.hash}) + b"\n"


def safe_cell(text: str) -> str:
    """A spreadsheet runs what begins like a formula; behind an apostrophe it is text."""
    return "'" + text if text.startswith(UNSAFE_BEGINNINGS) else text


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


def _without_money(entry: ChainedEntry) -> ChainedEntry:
    if not says_of_money(entry.fields[_ACTION], entry.fields[_KIND]):
        return entry
    shown = (*entry.fields[:_BEFORE], "", "")
    return ChainedEntry(entry.id, entry.form, shown, entry.hash)
