"""The audit log on the admin API: in pages, as a file, and whether its chain fits."""

from collections.abc import AsyncIterator
from datetime import datetime

from litestar import Controller, get
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery
from litestar.response import Stream

from gateway.administration import AuditFilters
from gateway.administration.audit_chain import chain_view, head_from
from gateway.administration.audit_export import ExportFormat
from gateway.administration.views import View, audit_view, page_view
from gateway.domain.permissions import Permission
from gateway.errors import Unprocessable
from gateway.http.access import needs
from gateway.http.admin_bodies import instant_ms
from gateway.http.admin_requests import AdminRequest, Verbs
from gateway.http.guards import may
from gateway.http.openapi_answers import AuditAnswer, Page
from gateway.http.openapi_audit import ChainAnswer
from gateway.http.openapi_operations import described

CHECKED_MAX = 10_000
"""Entries that one question about the chain looks at."""
YEARS = (2000, 2100)
MEDIA_TYPES = {
    ExportFormat.CSV: "text/csv",
    ExportFormat.JSONL: "application/jsonl",
}


async def asked_filters(
    *,
    actor: FromQuery[str | None] = None,
    action: FromQuery[str | None] = None,
    subject_kind: FromQuery[str | None] = None,
    subject_id: FromQuery[str | None] = None,
    tenant_id: FromQuery[str | None] = None,
    change_id: FromQuery[str | None] = None,
    since: FromQuery[str | None] = None,
    until: FromQuery[str | None] = None,
) -> AuditFilters:
    """The filters of the list and of both files. Raises Unprocessable."""
    return AuditFilters(
        actor, action, subject_kind, subject_id, tenant_id, change_id,
        audit_instant_ms(since, "since"), audit_instant_ms(until, "until"),
    )  # fmt: skip


Filters = NamedDependency[AuditFilters]
FILTERS = {"filters": Provide(asked_filters)}
"""For each controller whose handlers take them."""


class AuditController(Controller):
    """`/admin/v1/audit`."""

    path = "/audit"
    tags = ("audit",)
    dependencies = FILTERS

    @get(opt=described(Page[AuditAnswer]) | needs(Permission.AUDIT_READ))
    async def list_audit(
        self,
        request: AdminRequest,
        administration: Verbs,
        *,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
        filters: Filters,
    ) -> View:
        """Changes, the latest first, from `since` on and before `until`. An `action` that ends with
        `*` is all that begin so; of a tenant are the entries of all that belongs to it. What says
        of money is withheld from who may not read that."""
        page = await administration.list_audit(limit, cursor, filters)
        money = may(request, Permission.MONEY_READ)
        return page_view(page, [audit_view(entry, money=money) for entry in page.items])

    @get("/verify", opt=described(ChainAnswer) | needs(Permission.AUDIT_READ))
    async def verify_audit(
        self,
        administration: Verbs,
        *,
        from_id: FromQuery[int | None] = None,
        expect: FromQuery[str | None] = None,
    ) -> View:
        """Whether the entries fit each other: 10,000 of them, from `from_id` on, then `next_id`.
        `expect` is a head that was written down, as `<id>:<hash>`."""
        head = None if expect is None else head_from(expect)
        report = await administration.verify_audit(from_id, expect=head, entries_max=CHECKED_MAX)
        return chain_view(report)


class AuditFileController(Controller):
    """`/admin/v1/audit.csv` and `.jsonl`."""

    path = "/"
    tags = ("audit",)
    dependencies = FILTERS

    @get("/audit.csv", opt=described(media_type="text/csv") | needs(Permission.AUDIT_READ))
    async def audit_csv(
        self,
        request: AdminRequest,
        administration: Verbs,
        filters: Filters,
    ) -> Stream:
        """The entries as CSV, the oldest first; the filters are the list's."""
        return await _file(request, administration, ExportFormat.CSV, filters)

    @get(
        "/audit.jsonl", opt=described(media_type="application/jsonl") | needs(Permission.AUDIT_READ)
    )
    async def audit_jsonl(
        self,
        request: AdminRequest,
        administration: Verbs,
        filters: Filters,
    ) -> Stream:
        """The entries as JSON objects, one a line, the oldest first; the filters are the list's."""
        return await _file(request, administration, ExportFormat.JSONL, filters)


async def _file(
    request: AdminRequest, administration: Verbs, wanted: ExportFormat, filters: AuditFilters
) -> Stream:
    money = may(request, Permission.MONEY_READ)
    pieces = administration.export_audit(wanted, filters, money=money)
    # What Postgres or a filter refuses is an answer only while none has begun.
    first = await anext(pieces, b"")
    return Stream(
        _after(first, pieces),
        media_type=MEDIA_TYPES[wanted],
        headers={"content-disposition": f'attachment; filename="audit.{wanted}"'},
    )


async def _after(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in pieces:
        yield piece


def audit_instant_ms(text: str | None, field: str) -> int | None:
    """Unix milliseconds of a time that is asked for. Raises Unprocessable naming the field."""
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or not YEARS[0] <= instant.year < YEARS[1]:
        raise Unprocessable(
            f"{field}: must be a time like 2027-01-31T12:00:00Z, from 2000 to 2100", param=field
        )
    return instant_ms(instant, field=field)
