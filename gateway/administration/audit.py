"""The audit log, read. Nothing here or elsewhere writes it but the verbs' own transactions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Column, ColumnElement, literal, select, tuple_

from gateway.adapters.directory_rows import AUDIT_COLUMNS, audit_entry_from
from gateway.adapters.tables import audit_log
from gateway.administration.pages import LIMIT_DEFAULT, Page, check_page_limit, entry_id, page_of
from gateway.administration.store import Store, verb
from gateway.domain.account import AuditEntry
from gateway.domain.instants import instant_of
from gateway.errors import Unprocessable

ACTION_PREFIX = re.compile(r"[a-z_]+(\.[a-z_]*)?\*")


@dataclass(frozen=True)
class AuditFilters:
    """Which entries are wanted; None takes any.

    An action that ends with `*` is all that begin so, such as `key.*`. Entries of a tenant are
    those of all that belongs to it: its keys, prices, invoices and people. `since_ms` and
    `until_ms` are Unix milliseconds, `until_ms` itself left out.
    """

    actor: str | None = None
    action: str | None = None
    subject_kind: str | None = None
    subject_id: str | None = None
    tenant_id: str | None = None
    change_id: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


class AuditVerbs(Store):
    """Reading the audit log."""

    @verb
    async def list_audit(
        self,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
        filters: AuditFilters = AuditFilters(),
    ) -> Page[AuditEntry]:
        """Entries, the latest first."""
        check_page_limit(limit)
        query = select(*AUDIT_COLUMNS).where(*conditions_of(filters)).limit(limit + 1)
        place = place_of(filters)
        query = query.order_by(*(column.desc() for column in place))
        if cursor is not None:
            query = query.where(tuple_(*place) < _place_at(place, entry_id(cursor)))
        async with self._reading() as db:
            rows = await db.execute(query)
        return page_of([(str(row.id), audit_entry_from(row)) for row in rows], limit)


def conditions_of(filters: AuditFilters) -> list[ColumnElement[bool]]:
    """What an entry must be for the filters. Raises Unprocessable for a `*` that is not at the end
    of an action's beginning."""
    return list(_conditions(filters))


def place_of(filters: AuditFilters) -> tuple[Column[Any], ...]:
    """What entries are ordered by: where a time is asked for, by that first, so that an index leads
    to it however long ago it was; it is the same order while no clock is set back."""
    timed = filters.since_ms is not None or filters.until_ms is not None
    return (audit_log.c.at, audit_log.c.id) if timed else (audit_log.c.id,)


def after_place(place: tuple[Column[Any], ...], entry: int) -> ColumnElement[bool]:
    """Whether an entry comes after that one, in the order of `place`."""
    return tuple_(*place) > _place_at(place, entry)


def _place_at(place: tuple[Column[Any], ...], entry: int) -> ColumnElement[Any]:
    if len(place) == 1:
        return tuple_(literal(entry, BigInteger))
    its_time = select(audit_log.c.at).where(audit_log.c.id == entry).scalar_subquery()
    return tuple_(its_time, literal(entry, BigInteger))


def _conditions(filters: AuditFilters) -> Iterator[ColumnElement[bool]]:
    for name in ("actor", "subject_kind", "subject_id", "tenant_id", "change_id"):
        wanted = getattr(filters, name)
        if wanted is not None:
            yield audit_log.c[name] == wanted
    if filters.action is not None:
        yield _action(filters.action)
    if filters.since_ms is not None:
        yield audit_log.c.at >= instant_of(filters.since_ms)
    if filters.until_ms is not None:
        yield audit_log.c.at < instant_of(filters.until_ms)


def _action(wanted: str) -> ColumnElement[bool]:
    if "*" not in wanted:
        return audit_log.c.action == wanted
    if ACTION_PREFIX.fullmatch(wanted) is None:
        raise Unprocessable("action: a * stands at its end, such as key.*", param="action")
    # With the default escape Postgres makes a range of its index of it; `_` is any character else.
    return audit_log.c.action.like(wanted[:-1].replace("_", r"\_") + "%")
