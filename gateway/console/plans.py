"""Which tenant is on which plan, from when on."""

from litestar import get, post

from gateway.administration.views import plan_view
from gateway.console.access import page
from gateway.console.forms import Form
from gateway.console.lists import ROWS, given, paging
from gateway.console.money_forms import TOLD
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.instants import shown
from gateway.domain.permissions import Permission
from gateway.errors import Unprocessable

_PATH = "/console/money/prices/plans"


@get("/money/prices/plans", opt=page(Permission.MONEY_READ))
async def list_plans(visit: Here) -> Answer:
    """Memberships, the latest written first, and the form for another."""
    query = visit.query()
    filled = {"tenant_id": query.text("tenant_id"), "plan": None, "effective_from": None}
    return await _page(visit, query, Form.filled(filled))


@post("/money/prices/plans", opt=page(Permission.PRICES_WRITE))
async def set_plan(visit: Here) -> Answer:
    """Put the tenant on the plan, or on none."""
    form = await visit.form()
    form.need("tenant_id")
    begins_ms = form.instant_ms("effective_from")
    if not form.ok:
        return await _page(visit, Form(), form, status=422)
    try:
        member = await visit.parts.administration.set_plan(
            visit.actor, form.text("tenant_id"), form.optional("plan"), effective_from_ms=begins_ms
        )
    except TOLD as error:
        return await _page(visit, Form(), form.refused(error), status=error.status)
    on = f"on the plan {member.plan}" if member.plan else "on no plan"
    return visit.go(
        _PATH, said=f"{member.tenant_id} is {on} from {shown(member.effective_from_ms)} on."
    )


async def _page(visit: Visit, query: Form, form: Form, *, status: int = 200) -> Answer:
    filters = given(query, ("tenant_id",))
    rows = []
    cursor = None
    if status != 503:
        try:
            found = await visit.parts.administration.list_plans(
                ROWS, query.optional("cursor"), tenant_id=filters.get("tenant_id")
            )
            rows, cursor = [plan_view(each) for each in found.items], found.next_cursor
        except Unprocessable as error:
            query.refused(error)
            status = error.status
    return visit.show(
        "prices/plans.html",
        status=status,
        query=query,
        form=form,
        rows=rows,
        is_known=status != 503,
        **paging(_PATH, query, cursor, filters),
    )


PAGES = (list_plans, set_plan)
