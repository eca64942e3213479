"""Entries of the audit log as texts: what is hashed, and what a file of them holds."""

from typing import Any

from sqlalchemy import Row, Text, cast, func
from sqlalchemy.sql.elements import ColumnElement

from gateway.adapters.tables import audit_log
from gateway.domain.audit_chain import HASHED_FIELDS, ChainedEntry

_columns = audit_log.c
_SHOWN_AS: dict[str, ColumnElement[Any]] = {
    "at": func.to_char(func.timezone("UTC", _columns.at), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    "before": cast(_columns.before, Text),
    "after": cast(_columns.after, Text),
}

CHAINED_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(_SHOWN_AS.get(name, _columns[name]).label(name) for name in HASHED_FIELDS),
    _columns.form,
    _columns.hash,
)


def chained_from(row: Row[Any]) -> ChainedEntry:
    """The entry of a row of CHAINED_COLUMNS."""
    texts = ("" if value is None else str(value) for value in row[: len(HASHED_FIELDS)])
    return ChainedEntry(row.id, row.form, tuple(texts), bytes(row.hash).hex())
