"""Whether what was metered, priced and billed agrees: asked for a period, and as gateways found
it by themselves."""

from datetime import timedelta
from typing import Any

from litestar import get, post

from billing.domain.reconciliation.findings import count_findings, verdict_view
from gateway.console.access import page
from gateway.console.forms import Form
from gateway.console.lists import paging
from gateway.console.money_forms import TOLD
from gateway.console.reconcile_words import EXPLAINED, explained
from gateway.console.visit import Answer, Here, Visit, known
from gateway.domain.permissions import Permission
from gateway.http.reconciliation import read_runs

_PATH = "/console/money/reconciliation"
RUNS = 20
"""Of the list, on one page."""
FINDINGS_SHOWN = 100
"""Of one check."""
_ASKED = timedelta(hours=1)


@get("/money/reconciliation", opt=page(Permission.MONEY_READ))
async def show_reconciliation(visit: Here) -> Answer:
    """What gateways found last, and the form to ask for a period."""
    return await _page(visit, _filled(visit))


@post("/money/reconciliation", status_code=200, opt=page(Permission.MONEY_READ))
async def reconcile(visit: Here) -> Answer:
    """Compare a period now. It changes nothing, so it is answered where it was asked."""
    form = await visit.form()
    form.need("since", "until")
    since, until = form.instant("since"), form.instant("until")
    if not form.ok or since is None or until is None:
        return await _page(visit, form, status=422)
    try:
        period, verdicts = await visit.parts.reconciliations.run(since, until, now=visit.now)
    except TOLD as error:
        return await _page(visit, form.refused(error), status=error.status)
    result = {
        "from": period.since,
        "to": period.until,
        "findings": count_findings(verdicts),
        "checks": [_shortened(verdict_view(each)) for each in verdicts],
    }
    return await _page(visit, form, result=result)


async def _page(
    visit: Visit, form: Form, *, status: int = 200, result: dict[str, Any] | None = None
) -> Answer:
    query = visit.query()
    only = query.flag("found")
    runs = await known(
        read_runs(
            visit.parts.finance_postgres,
            RUNS,
            query.optional("cursor"),
            only_with_findings=only,
        )
    )
    found = {"items": [], "next_cursor": None} if runs is None else runs
    return visit.show(
        "reconciliation/page.html",
        status=status,
        form=form,
        result=result,
        runs=found["items"],
        is_known=runs is not None,
        only=only,
        explained=explained,
        checks=EXPLAINED,
        **paging(_PATH, query, found["next_cursor"], {"found": "1" if only else None}),
    )


def _filled(visit: Visit) -> Form:
    """The last hour that is over."""
    until = visit.now.replace(minute=0, second=0, microsecond=0)
    return Form.filled(
        {"since": f"{until - _ASKED:%Y-%m-%dT%H:%M}", "until": f"{until:%Y-%m-%dT%H:%M}"}
    )


def _shortened(check: dict[str, Any]) -> dict[str, Any]:
    return {**check, "findings": check["findings"][:FINDINGS_SHOWN]}


PAGES = (show_reconciliation, reconcile)
