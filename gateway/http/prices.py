"""What is charged: `/billing/v1/prices` and `/billing/v1/plans`."""

from litestar import Controller, get, post
from litestar.params import FromQuery

from gateway.administration.price_wishes import PriceTexts, read_price
from gateway.administration.views import View, page_view, plan_view, price_view
from gateway.domain.permissions import Permission
from gateway.http.access import needs
from gateway.http.admin_bodies import PlanBody, PriceBody, instant_ms, read_body
from gateway.http.admin_requests import AdminRequest, Verbs, actor_of
from gateway.http.openapi_answers import Page, PlanAnswer, PriceAnswer
from gateway.http.openapi_operations import described


class PriceController(Controller):
    """`/billing/v1/prices`."""

    path = "/prices"
    tags = ("prices",)

    @get(opt=described(Page[PriceAnswer]) | needs(Permission.MONEY_READ))
    async def list_prices(
        self,
        administration: Verbs,
        *,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
        model: FromQuery[str | None] = None,
        tenant_id: FromQuery[str | None] = None,
        plan: FromQuery[str | None] = None,
    ) -> View:
        """Prices, the latest written first; each holds until the next of the same model, provider,
        currency, tenant, plan and class."""
        page = await administration.list_prices(
            limit, cursor, model=model, tenant_id=tenant_id, plan=plan
        )
        return page_view(page, [price_view(price) for price in page.items])

    @post(opt=described(PriceAnswer, body=PriceBody) | needs(Permission.PRICES_WRITE))
    async def set_price(self, request: AdminRequest, administration: Verbs) -> View:
        """Add a price, or with `withdrawn` end those of a tenant, a plan or a class. Without
        `effective_from` it holds at once where it takes the place of none, else in 2 s; with it
        from an instant that is 2 s ahead at least, or earlier where none held. None is changed or
        taken back."""
        body = await read_body(request, PriceBody)
        price = await administration.set_price(
            actor_of(request),
            read_price(texts_of(body)),
            effective_from_ms=instant_ms(body.effective_from, field="effective_from"),
        )
        return price_view(price)


class PlanController(Controller):
    """`/billing/v1/plans`."""

    path = "/plans"
    tags = ("prices",)

    @get(opt=described(Page[PlanAnswer]) | needs(Permission.MONEY_READ))
    async def list_plans(
        self,
        administration: Verbs,
        *,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
        tenant_id: FromQuery[str | None] = None,
    ) -> View:
        """Which tenant is on which plan from when on, the latest written first."""
        page = await administration.list_plans(limit, cursor, tenant_id=tenant_id)
        return page_view(page, [plan_view(member) for member in page.items])

    @post(opt=described(PlanAnswer, body=PlanBody) | needs(Permission.PRICES_WRITE))
    async def set_plan(self, request: AdminRequest, administration: Verbs) -> View:
        """Put a tenant on a plan, or with null on none: in 2 s, or from `effective_from` on. A
        tenant on a plan pays the plan's prices where it has none of its own."""
        body = await read_body(request, PlanBody)
        member = await administration.set_plan(
            actor_of(request),
            body.tenant_id,
            body.plan,
            effective_from_ms=instant_ms(body.effective_from, field="effective_from"),
        )
        return plan_view(member)


def texts_of(body: PriceBody) -> PriceTexts:
    """The price of a body."""
    fields = {name: getattr(body, name) for name in PriceTexts.__dataclass_fields__}
    of = body.request_class
    return PriceTexts(**fields | {"request_class": None if of is None else of.value})
