"""Files of the audit log: what a spreadsheet gets, and what a program does."""

import csv
import io

import msgspec
import pytest

from gateway.administration.audit_export import (
    COLUMNS,
    UNSAFE_BEGINNINGS,
    csv_head,
    csv_rows,
    json_lines,
)
from gateway.domain.audit_chain import ChainedEntry

FIELDS = (
    "7",
    "2026-11-30T12:00:00.000000Z",
    "cli:me",
    "a.b",
    "key",
    "k",
    "",
    "",
    "",
    '{"a": 1.50}',
)
ENTRY = ChainedEntry(7, 1, FIELDS, "ab" * 32)


@pytest.mark.parametrize("beginning", UNSAFE_BEGINNINGS)
def test_no_cell_begins_a_formula_and_each_can_be_had_back(beginning: str) -> None:
    """Wherever the text came from."""
    hostile = beginning + 'cmd|" /C calc"!A0'
    fields = (*FIELDS[:5], hostile, *FIELDS[6:])
    written = csv_head() + csv_rows([ChainedEntry(7, 1, fields, ENTRY.hash)])
    row = next(csv.DictReader(io.StringIO(written.decode(), newline="")))
    assert row["subject_id"] == "'" + hostile
    assert tuple(row) == COLUMNS


def test_other_cells_are_as_they_are_hashed() -> None:
    """Numbers with all their digits."""
    row = next(csv.reader(io.StringIO(csv_rows([ENTRY]).decode(), newline="")))
    assert tuple(row) == (*FIELDS, "1", ENTRY.hash)


def test_a_line_is_one_object() -> None:
    """With what is absent as null, and what was changed as it is stored."""
    lines = json_lines([ENTRY, ENTRY]).splitlines()
    assert len(lines) == 2
    assert b'"after":{"a": 1.50}' in lines[0]
    entry = msgspec.json.decode(lines[0])
    assert (entry["id"], entry["tenant_id"], entry["before"]) == (7, None, None)
    assert tuple(entry) == COLUMNS
