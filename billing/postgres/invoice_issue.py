"""Issuing: what a draft has is taken, numbered and frozen, all in one transaction.

Shippers hold no lock. What stands in the way is looked at first, and only then are the records
taken, by one statement: a journal that was in Postgres through the period's end is still, and what
is committed after that statement began is late, and on the next invoice.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import replace
from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.invoicing.document import Document, due_on
from billing.domain.invoicing.issuing import (
    Billed,
    Blocker,
    IssueRefused,
    Obstacle,
    Override,
    left,
)
from billing.domain.invoicing.lifecycle import Status, issued
from billing.domain.invoicing.lines import Line, LinesDisagree
from billing.domain.invoicing.numbering import date_of_issue, series_of
from billing.domain.invoicing.party import Seller
from billing.domain.invoicing.periods import month
from billing.postgres.invoice_blockers import find_dead_letters, find_roll_up_differences
from billing.postgres.invoice_draft import columns_of, document_of
from billing.postgres.invoice_numbers import check_prefixes, take_number
from billing.postgres.invoice_rows import Found, sum_rows, take_rows
from billing.postgres.invoice_scope import Scope
from billing.postgres.invoice_tables import invoice, invoice_line
from billing.postgres.invoices import StoredInvoice, load_invoice, lock_tenant, store_time
from billing.postgres.sellers import load_seller
from billing.postgres.unbilled import find_unbilled

_columns = invoice.c


class Issued(NamedTuple):
    """An issued invoice; `is_new` where this call issued it."""

    invoice: StoredInvoice
    is_new: bool


async def issue_invoice(
    connection: AsyncConnection,
    invoice_id: UUID,
    billed: Billed,
    *,
    expected: Sequence[Blocker],
    override: Override | None = None,
    by: str,
) -> Issued:
    """Issue a draft, from the records that there are now. One that is issued already stays as it
    is, with its number.

    `expected` is what Redis and Postgres say may still come, asked for before the transaction
    began. Within the caller's transaction, READ COMMITTED, which is to be rolled back where this
    raises: IssueRefused with all that stands in the way, InvoiceNotFound, RefusedChange for a void
    one, PrefixTaken where the seller's numbers are of credit notes.
    """
    tenant_id = billed.customer.tenant_id
    await lock_tenant(connection, tenant_id)
    draft = await load_invoice(connection, invoice_id, lock=True)
    if issued(draft.standing) == draft.standing:
        return Issued(draft, False)
    if (draft.tenant_id, draft.currency) != (tenant_id, billed.currency):
        raise ValueError("an invoice is issued to the tenant and in the currency that it is for")
    now = await store_time(connection)
    period = month(draft.month, billed.time_zone)
    scope = Scope(tenant_id, billed.currency, period)
    seller = await load_seller(connection)
    blockers = await find_in_the_way(connection, scope, seller, now, expected)
    if seller is None or left(blockers, override):
        in_rows = (await sum_rows(connection, scope)).blockers
        raise IssueRefused([*blockers, *in_rows])
    found = await take_rows(connection, scope, invoice_id)
    blockers += found.blockers
    blockers += await find_roll_up_differences(connection, scope, invoice_id)
    if left(blockers, override):
        raise IssueRefused(blockers)
    try:
        drawn = document_of(invoice_id, billed, period, found, seller=seller, cut_off=now)
    except LinesDisagree as disagreeing:
        raise IssueRefused([_disagreement(disagreeing)]) from disagreeing
    await _write_lines(connection, invoice_id, drawn.lines)
    document = await _numbered(connection, drawn, seller, now, billed.payment_terms_days)
    await _freeze(connection, document, found, by=by, override=_overridden(override, blockers))
    return Issued(await load_invoice(connection, invoice_id), True)


async def find_in_the_way(
    connection: AsyncConnection,
    scope: Scope,
    seller: Seller | None,
    now: datetime,
    expected: Iterable[Blocker],
) -> list[Blocker]:
    """What would keep a draft from being issued, without a look at its records, which takes as long
    as there are many."""
    return [
        *_before(scope.period.end, now, seller),
        *expected,
        *await find_dead_letters(connection, scope.period.end),
        *await find_unbilled(connection, scope),
    ]


def _before(end: datetime, now: datetime, seller: Seller | None) -> Iterable[Blocker]:
    if now < end:
        yield Blocker(
            obstacle=Obstacle.PERIOD_OPEN,
            subject=end.isoformat(),
            what=f"its period ends at {end.isoformat()}",
        )
    if seller is None:
        yield Blocker(
            obstacle=Obstacle.NO_SELLER, subject="seller", what="nobody has said who sells"
        )


def _disagreement(error: LinesDisagree) -> Blocker:
    return Blocker(obstacle=Obstacle.LINES_DISAGREE, subject="lines", what=str(error))


async def _write_lines(
    connection: AsyncConnection, invoice_id: UUID, lines: Sequence[Line]
) -> None:
    if not lines:
        return
    rows = []
    for line in lines:
        row = {"invoice_id": invoice_id, **msgspec.structs.asdict(line)}
        row["class"] = row.pop("request_class")
        rows.append(row)
    await connection.execute(insert(invoice_line), rows)


async def _numbered(
    connection: AsyncConnection, document: Document, seller: Seller, now: datetime, days: int
) -> Document:
    issued_on = date_of_issue(now, seller.time_zone)
    await check_prefixes(connection, seller)
    number = await take_number(connection, series_of(seller.invoice_prefix, issued_on))
    return replace(
        document,
        number=number,
        issued_at=now,
        issued_on=issued_on,
        due_on=due_on(issued_on, days),
    )


async def _freeze(
    connection: AsyncConnection,
    document: Document,
    found: Found,
    *,
    by: str,
    override: dict[str, object] | None,
) -> None:
    one = update(invoice).where(_columns.id == UUID(document.invoice_id))
    await connection.execute(
        one.values(
            **columns_of(document, found),
            status=Status.ISSUED.value,
            number=document.number,
            issued_at=document.issued_at,
            issued_by=by,
            due_on=document.due_on,
            override=override,
        )
    )
    if document.totals.total_minor == 0:
        await connection.execute(one.values(status=Status.PAID.value, paid_at=document.issued_at))


def _overridden(override: Override | None, blockers: Sequence[Blocker]) -> dict[str, object] | None:
    """What goes on record; nothing where nothing was in the way."""
    if override is None or not blockers:
        return None
    return {"reason": override.reason, "blockers": msgspec.to_builtins(blockers)}
