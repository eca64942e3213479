"""The audit log, read. Nothing here or elsewhere writes it but the verbs' own transactions."""

from dataclasses import dataclass

from sqlalchemy import select

from gateway.adapters.directory_rows import AUDIT_COLUMNS, audit_entry_from
from gateway.adapters.tables import audit_log
from gateway.administration.pages import LIMIT_DEFAULT, Page, check_page_limit, entry_id, page_of
from gateway.administration.store import Store, verb
from gateway.domain.account import AuditEntry


@dataclass(frozen=True)
class AuditFilters:
    """Which entries are wanted; None takes any."""

    actor: str | None = None
    action: str | None = None
    subject_kind: str | None = None
    subject_id: str | None = None


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
        query = select(*AUDIT_COLUMNS).order_by(audit_log.c.id.desc()).limit(limit + 1)
        for name in ("actor", "action", "subject_kind", "subject_id"):
            wanted = getattr(filters, name)
            if wanted is not None:
                query = query.where(audit_log.c[name] == wanted)
        if cursor is not None:
            query = query.where(audit_log.c.id < entry_id(cursor))
        async with self._reading() as db:
            rows = await db.execute(query)
        return page_of([(str(row.id), audit_entry_from(row)) for row in rows], limit)
