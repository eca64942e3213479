"""One request that has ended, as Postgres knows it: its record, its streams, what it cost, and
which invoice took it. Looked up by its id alone, whose time says which partition has it."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import and_, exists, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.price_book import Price
from billing.postgres.invoice_tables import invoice, invoice_line, invoice_row
from billing.postgres.price_tables import price
from billing.postgres.prices import PRICE_COLUMNS, price_from
from billing.postgres.tables import usage_attempt, usage_late, usage_provisional, usage_record
from billing.postgres.usage_records import UsageRow

_OF_LINE = ("position", "kind", "unit", "quantity")


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One stream that was opened for a request. Times are UTC."""

    attempt: int
    choice: int
    worker_id: str
    provider: str
    started_at: datetime
    ended_at: datetime
    outcome: str
    prompt_tokens: int
    output_tokens: int
    provider_request_id: str | None
    provider_cost_pico: int | None
    usage_source: str | None
    cached_prompt_tokens: int | None


class LineRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an invoice that the request is in; `quantity` is the whole line's."""

    position: int
    kind: str
    unit: str
    quantity: int


class InvoiceOf(msgspec.Struct, frozen=True, kw_only=True):
    """The invoice that took a request, and in which lines."""

    id: UUID
    number: str | None
    month: str
    status: str
    lines: tuple[LineRow, ...]


class EndedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that Postgres knows of a request.

    `boot` and `seq` are the journal's place that the record came from, None where it came another
    way; `is_provisional` where another gateway wrote it in the place of one that is gone;
    `came_late` where the gateway's own account came after that was final.
    """

    record: UsageRow
    gateway_id: str
    boot: int | None
    seq: int | None
    recorded_at: datetime
    is_provisional: bool
    came_late: bool
    attempts: tuple[AttemptRow, ...]
    price: Price | None
    invoice: InvoiceOf | None

    @property
    def tenant_id(self) -> str:
        """Whose it is."""
        return self.record.tenant_id


async def find_request(db: AsyncConnection, request_id: UUID) -> EndedRequest | None:
    """None where there is no such record."""
    admitted_at = _time_of(request_id)
    if admitted_at is None:
        return None
    columns = usage_record.c
    names = [field.encode_name for field in msgspec.structs.fields(UsageRow)]

    def is_in(table: Any) -> Any:
        return exists().where(table.c.request_id == request_id, table.c.admitted_at == admitted_at)

    query = select(
        *(columns[name] for name in names),
        columns.gateway_id,
        columns.boot,
        columns.seq,
        columns.recorded_at,
        is_in(usage_provisional).label("is_provisional"),
        is_in(usage_late).label("came_late"),
    ).where(columns.request_id == request_id, columns.admitted_at == admitted_at)
    row = (await db.execute(query)).one_or_none()
    if row is None:
        return None
    record = msgspec.convert(dict(zip(names, row[: len(names)], strict=True)), UsageRow)
    return EndedRequest(
        record=record,
        gateway_id=row.gateway_id,
        boot=row.boot,
        seq=row.seq,
        recorded_at=row.recorded_at,
        is_provisional=row.is_provisional,
        came_late=row.came_late,
        attempts=await _attempts(db, request_id, admitted_at),
        price=await _price(db, record.price_id),
        invoice=await _invoice(db, record),
    )


def _time_of(request_id: UUID) -> datetime | None:
    """The instant in an id; None where it is none of ours."""
    if request_id.version != 7:
        return None
    at_ms = request_id.int >> 80
    try:
        whole = datetime.fromtimestamp(at_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return whole.replace(microsecond=at_ms % 1000 * 1000)


async def _attempts(
    db: AsyncConnection, request_id: UUID, admitted_at: datetime
) -> tuple[AttemptRow, ...]:
    columns, names = usage_attempt.c, AttemptRow.__struct_fields__
    query = (
        select(*(columns[name] for name in names))
        .where(columns.request_id == request_id, columns.admitted_at == admitted_at)
        .order_by(columns.attempt, columns.choice)
    )
    rows = [dict(zip(names, row, strict=True)) for row in await db.execute(query)]
    return msgspec.convert(rows, tuple[AttemptRow, ...])


async def _price(db: AsyncConnection, price_id: int | None) -> Price | None:
    if price_id is None:
        return None
    row = (await db.execute(select(*PRICE_COLUMNS).where(price.c.id == price_id))).one_or_none()
    return None if row is None else price_from(row)


async def _invoice(db: AsyncConnection, record: UsageRow) -> InvoiceOf | None:
    found = await db.execute(
        select(
            invoice.c.id, invoice.c.number, invoice.c.month, invoice.c.status, invoice.c.time_zone
        )
        .join(invoice_row, invoice_row.c.invoice_id == invoice.c.id)
        .where(invoice_row.c.request_id == record.request_id, ~invoice_row.c.void)
    )
    row = found.one_or_none()
    if row is None:
        return None
    line = invoice_line.c
    month = text("to_char(CAST(:at AS timestamptz) AT TIME ZONE :zone, 'YYYY-MM')").bindparams(
        at=record.admitted_at, zone=row.time_zone
    )
    query = (
        select(*(line[name] for name in _OF_LINE))
        .where(
            and_(
                line.invoice_id == row.id,
                line.month == month,
                line.model == record.model,
                line.provider == record.provider,
                line["class"] == record.request_class,
                line.price_id == record.price_id,
                line.unit.in_(units_of(record)),
            )
        )
        .order_by(line.position)
    )
    rows = [dict(zip(_OF_LINE, each, strict=True)) for each in await db.execute(query)]
    return InvoiceOf(
        id=row.id,
        number=row.number,
        month=row.month,
        status=row.status,
        lines=msgspec.convert(rows, tuple[LineRow, ...]),
    )


def units_of(record: UsageRow) -> dict[str, int]:
    """What of the request has a line on an invoice, and how much: a count of nothing has none."""
    counts = {
        "input_tokens": record.prompt_tokens - record.cached_prompt_tokens,
        "cached_input_tokens": record.cached_prompt_tokens,
        "output_tokens": record.output_tokens - record.reasoning_tokens,
        "reasoning_tokens": record.reasoning_tokens,
        "requests": 1,
    }
    return {unit: count for unit, count in counts.items() if count > 0}
