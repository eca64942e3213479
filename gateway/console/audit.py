"""Who changed what, and when; and whether the log is as it was written."""

from itertools import groupby
from typing import Any

from litestar import get

from gateway.administration import AuditFilters
from gateway.administration.audit_chain import chain_view, head_from
from gateway.administration.views import View, audit_view
from gateway.console.access import page
from gateway.console.differences import differences, summary
from gateway.console.forms import Form
from gateway.console.lists import ROWS, address, given, paging
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.account import AuditEntry
from gateway.domain.permissions import Permission
from gateway.errors import NotFound, Unprocessable
from gateway.http.admin_audit import audit_instant_ms

PATH = "/console/audit"
CHECKED = 2_500
"""Entries of the chain that one page looks at: some tenths of a second on a busy machine."""
FILTERS = (
    "actor",
    "action",
    "subject_kind",
    "subject_id",
    "tenant_id",
    "change_id",
    "since",
    "until",
)
"""As the list and the files of the API have them."""
KINDS = (
    "tenant",
    "key",
    "user",
    "model",
    "worker",
    "hosted",
    "price",
    "invoice",
    "credit_note",
    "seller",
)
_TIMES = ("since", "until")


@get("/audit", opt=page(Permission.AUDIT_READ))
async def show_audit(visit: Here) -> Answer:
    """Entries that the filters let through, the latest first."""
    form = visit.query()
    try:
        filters = _filters(form)
        if not form.ok:
            return _list_page(visit, form, [], None, status=422)
        found = await visit.parts.administration.list_audit(ROWS, form.optional("cursor"), filters)
    except Unprocessable as error:
        return _list_page(visit, form.refused(error), [], None, status=422)
    return _list_page(visit, form, found.items, found.next_cursor)


@get("/audit/chain", opt=page(Permission.AUDIT_READ))
async def check_chain(visit: Here) -> Answer:
    """Whether entries fit each other, from the one that is asked for on."""
    form = visit.query()
    report, status = None, 200
    try:
        from_id = form.whole("from_id")
        expect = form.optional("expect")
        if form.ok and (form.flag("check") or from_id is not None or expect is not None):
            report = chain_view(
                await visit.parts.administration.verify_audit(
                    from_id,
                    expect=None if expect is None else head_from(expect),
                    entries_max=CHECKED,
                )
            )
    except (NotFound, Unprocessable) as error:
        status = 422
        if isinstance(error, NotFound):
            form.errors["from_id"] = error.message
        else:
            form.refused(error)
    return visit.show(
        "audit/chain.html",
        status=status if form.ok else 422,
        form=form,
        report=report,
        checked_at_once=CHECKED,
    )


def _list_page(
    visit: Visit,
    form: Form,
    entries: list[AuditEntry],
    next_cursor: str | None,
    *,
    status: int = 200,
) -> Answer:
    wanted = given(form, FILTERS)
    asked = {**wanted, **{name: f"{wanted[name]}Z" for name in _TIMES if name in wanted}}
    return visit.show(
        "audit/page.html",
        status=status,
        form=form,
        changes=_changes(visit, entries),
        wanted=wanted,
        kinds=[("", "anything"), *((kind, kind.replace("_", " ")) for kind in KINDS)],
        csv_path=address("/admin/v1/audit.csv", asked),
        lines_path=address("/admin/v1/audit.jsonl", asked),
        path_with=lambda **chosen: address(PATH, chosen),
        **paging(PATH, form, next_cursor, wanted),
    )


def _changes(visit: Visit, entries: list[AuditEntry]) -> list[list[View]]:
    """Entries, those beside each other that are of one change together."""
    money = visit.may(Permission.MONEY_READ)
    groups = groupby(entries, key=lambda entry: entry.change_id or entry.id)
    return [[_row(entry, money=money) for entry in group] for _, group in groups]


def _row(entry: AuditEntry, *, money: bool) -> View:
    view = audit_view(entry, money=money)
    found = differences(view["before"], view["after"])
    image = view["after"] or view["before"] or {}
    called = image.get("email") or image.get("name")
    return {**view, "differences": found, "summary": summary(found), "called": called}


def _filters(form: Form) -> AuditFilters:
    """What was asked for. Times are UTC, and are shown as a field of a browser has them. Raises
    Unprocessable."""
    texts: dict[str, Any] = {name: form.optional(name) for name in FILTERS if name not in _TIMES}
    for name in _TIMES:
        at = form.instant(name)
        texts[f"{name}_ms"] = None if at is None else audit_instant_ms(at.isoformat(), name)
        if at is not None:
            shown = at.replace(tzinfo=None)
            form.values[name] = [shown.isoformat(timespec="seconds" if at.second else "minutes")]
    return AuditFilters(**texts)


PAGES = (show_audit, check_chain)
