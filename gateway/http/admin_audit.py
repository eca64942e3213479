"""The audit log on the admin API."""

from litestar import Controller, get
from litestar.params import FromQuery

from gateway.administration import AuditFilters
from gateway.administration.views import View, audit_view, page_view
from gateway.domain.permissions import Permission
from gateway.http.access import needs
from gateway.http.admin_requests import Verbs
from gateway.http.openapi_answers import AuditAnswer, Page
from gateway.http.openapi_operations import described


class AuditController(Controller):
    """`/admin/v1/audit`."""

    path = "/audit"
    tags = ("audit",)

    @get(opt=described(Page[AuditAnswer]) | needs(Permission.AUDIT_READ))
    async def list_audit(
        self,
        administration: Verbs,
        *,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
        actor: FromQuery[str | None] = None,
        action: FromQuery[str | None] = None,
        subject_kind: FromQuery[str | None] = None,
        subject_id: FromQuery[str | None] = None,
    ) -> View:
        """Changes, the latest first."""
        filters = AuditFilters(actor, action, subject_kind, subject_id)
        page = await administration.list_audit(limit, cursor, filters)
        return page_view(page, [audit_view(entry) for entry in page.items])
