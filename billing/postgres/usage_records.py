"""Usage records in Postgres: insert a batch, list by page, sum by a dimension."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Date, String, case, cast, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.postgres.tables import usage_record
from billing.postgres.usage_insert import JournaledRecord, insert_batch

__all__ = [
    "GroupBy",
    "InvalidCursor",
    "JournaledRecord",
    "UsageFilter",
    "UsagePage",
    "UsageRow",
    "UsageSum",
    "conditions_of",
    "insert_batch",
    "list_records",
    "sum_usage",
]


class InvalidCursor(ValueError):
    """The cursor is not one that a list of records gave."""


class UsageRow(msgspec.Struct, frozen=True, kw_only=True, rename={"request_class": "class"}):
    """A usage record as the view `usage_records` shows it. Times are UTC."""

    request_id: UUID
    tenant_id: str
    api_key_id: str
    model: str
    request_class: str
    admitted_at: datetime
    first_token_at: datetime | None
    ended_at: datetime
    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    reasoning_tokens: int
    sequences: int
    queue_ms: int
    ttft_ms: int | None
    tpot_us: int | None
    itl_max_us: int | None
    outcome: str
    final: bool
    finish_reason: str | None
    usage_source: str
    usage_flags: tuple[str, ...]
    provider: str
    worker_id: str | None
    attempts: int
    billable: bool
    billing_policy: int
    price_id: int | None
    cost_pico: int | None
    list_cost_pico: int | None
    currency: str | None


class UsagePage(msgspec.Struct, frozen=True):
    """Some records, newest first; `next_cursor` asks for those after them, None at the end."""

    records: tuple[UsageRow, ...]
    next_cursor: str | None


class UsageFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records: of a tenant, admitted at or after `since` and before `until`."""

    tenant_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class GroupBy(StrEnum):
    """What usage is summed by."""

    TENANT = "tenant"
    KEY = "key"
    MODEL = "model"
    CLASS = "class"
    PROVIDER = "provider"
    DAY = "day"


class UsageSum(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of one tenant, key, model, class, provider or day (`group`). Token counts cover all
    records, the `billable_` ones those that are paid for."""

    group: str
    requests: int
    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    reasoning_tokens: int
    billable_requests: int
    billable_prompt_tokens: int
    billable_output_tokens: int
    provisional_requests: int


TOKEN_COUNTS = ("prompt_tokens", "cached_prompt_tokens", "output_tokens", "reasoning_tokens")
_COLUMNS = usage_record.c


async def list_records(
    connection: AsyncConnection,
    chosen: UsageFilter,
    *,
    limit: int = 100,
    cursor: str | None = None,
) -> UsagePage:
    """One page, newest first. A page is stable: records that arrive later never shift it.

    Raises InvalidCursor.
    """
    names = [field.encode_name for field in msgspec.structs.fields(UsageRow)]
    query = (
        select(*(_COLUMNS[name] for name in names))
        .where(*conditions_of(chosen, cursor))
        .order_by(_COLUMNS.admitted_at.desc(), _COLUMNS.request_id.desc())
        .limit(limit + 1)
    )
    rows = [dict(zip(names, row, strict=True)) for row in await connection.execute(query)]
    records = msgspec.convert(rows[:limit], tuple[UsageRow, ...])
    more = len(rows) > limit
    return UsagePage(records, str(records[-1].request_id) if more else None)


async def sum_usage(
    connection: AsyncConnection,
    chosen: UsageFilter,
    *,
    group_by: GroupBy,
    time_zone: str = "UTC",
) -> list[UsageSum]:
    """Usage per tenant, key, model, class, provider or day of `time_zone`, ordered by the group."""
    group = _group(group_by, time_zone)
    query = (
        select(
            group.label("group"),
            func.count().label("requests"),
            *(_total(name) for name in TOKEN_COUNTS),
            func.count().filter(_COLUMNS.billable).label("billable_requests"),
            _total("prompt_tokens", only_billable=True),
            _total("output_tokens", only_billable=True),
            func.count().filter(~_COLUMNS.final).label("provisional_requests"),
        )
        .where(*conditions_of(chosen))
        .group_by(group)
        .order_by(group)
    )
    names = UsageSum.__struct_fields__
    rows = [dict(zip(names, row, strict=True)) for row in await connection.execute(query)]
    return msgspec.convert(rows, list[UsageSum])


def _total(name: str, *, only_billable: bool = False) -> ColumnElement[int]:
    column = _COLUMNS[name]
    if only_billable:
        counted = case((_COLUMNS.billable, column), else_=0)
        return cast(func.sum(counted), BigInteger).label(f"billable_{name}")
    return cast(func.sum(column), BigInteger).label(name)


def _group(group_by: GroupBy, time_zone: str) -> ColumnElement[str]:
    match group_by:
        case GroupBy.TENANT:
            return _COLUMNS.tenant_id
        case GroupBy.KEY:
            return _COLUMNS.api_key_id
        case GroupBy.MODEL:
            return _COLUMNS.model
        case GroupBy.CLASS:
            return _COLUMNS["class"]
        case GroupBy.PROVIDER:
            return _COLUMNS.provider
        case GroupBy.DAY:
            local = func.timezone(literal(time_zone, literal_execute=True), _COLUMNS.admitted_at)
            return cast(cast(local, Date), String)


def conditions_of(chosen: UsageFilter, cursor: str | None = None) -> list[ColumnElement[bool]]:
    """What holds of the chosen records, and with a cursor of those after it, newest first. Raises
    InvalidCursor."""
    conditions: list[ColumnElement[bool]] = []
    if chosen.tenant_id is not None:
        conditions.append(_COLUMNS.tenant_id == chosen.tenant_id)
    if chosen.since is not None:
        conditions.append(_COLUMNS.admitted_at >= chosen.since)
    if chosen.until is not None:
        conditions.append(_COLUMNS.admitted_at < chosen.until)
    if cursor is not None:
        after = _read_cursor(cursor)
        # Ids grow with time, so that the id alone is the place of a record in this order.
        conditions.append(_COLUMNS.request_id < after)
        conditions.append(_COLUMNS.admitted_at <= func.uuid_v7_time(after))
    return conditions


def _read_cursor(cursor: str) -> UUID:
    try:
        found = UUID(cursor)
    except ValueError as error:
        raise InvalidCursor("not a cursor of this list") from error
    if found.version != 7:
        raise InvalidCursor("not a cursor of this list")
    return found
