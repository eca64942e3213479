"""The finance API as one router: what is charged. For admins and finance, and for nobody else."""

from collections.abc import Sequence

from litestar import Controller, Router, get, post
from litestar.di import Provide
from litestar.params import FromQuery
from litestar.types import ControllerRouterHandler

from billing.domain.price_book import PRICE_PICO_MAX
from gateway.administration import Administration, NewPrice
from gateway.administration.checks import check_currency
from gateway.administration.hosted_prices import parse_price
from gateway.administration.views import View, page_view, price_view
from gateway.domain.account import Role
from gateway.http.admin import BODY_BYTES_MAX
from gateway.http.admin_bodies import PriceBody, instant_ms, read_body
from gateway.http.admin_requests import AdminRequest, Verbs, actor_of
from gateway.http.guards import role_guard
from gateway.http.openapi_answers import Page, PriceAnswer
from gateway.http.openapi_operations import described
from gateway.http.problems import PROBLEM_HANDLERS

ROLES = frozenset({Role.ADMIN, Role.FINANCE})


class PriceController(Controller):
    """`/billing/v1/prices`."""

    path = "/prices"
    tags = ("prices",)

    @get(opt=described(Page[PriceAnswer]))
    async def list_prices(
        self,
        administration: Verbs,
        *,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
        model: FromQuery[str | None] = None,
    ) -> View:
        """List prices, the latest written first; each holds until the next of the same model,
        provider and currency."""
        page = await administration.list_prices(limit, cursor, model=model)
        return page_view(page, [price_view(price) for price in page.items])

    @post(opt=described(PriceAnswer, body=PriceBody))
    async def set_price(self, request: AdminRequest, administration: Verbs) -> View:
        """Add a list price. Without `effective_from` a first price holds at once, a later one in
        2 s; with it, from an instant that is 2 s ahead at least. None is changed or taken back."""
        body = await read_body(request, PriceBody)
        price = await administration.set_price(
            actor_of(request),
            _new_price(body),
            effective_from_ms=instant_ms(body.effective_from, field="effective_from"),
        )
        return price_view(price)


def billing_router(
    administration: Administration, *, more: Sequence[ControllerRouterHandler] = ()
) -> Router:
    """`/billing/v1`, guarded by users' tokens. Errors are problems. `more` are routes below it that
    ask others than the administration."""
    return Router(
        "/billing/v1",
        route_handlers=[PriceController, *more],
        dependencies={"administration": Provide(lambda: administration, sync_to_thread=False)},
        guards=[role_guard(administration, readers=ROLES, writers=ROLES)],
        exception_handlers=PROBLEM_HANDLERS,
        request_max_body_size=BODY_BYTES_MAX,
    )


def _new_price(body: PriceBody) -> NewPrice:
    currency = check_currency(body.currency)

    def pico(text: str, field: str) -> int:
        return parse_price(text, field=field, currency=currency, pico_max=PRICE_PICO_MAX)

    cached = body.cached_input
    return NewPrice(
        model=body.model,
        provider=body.provider,
        currency=currency,
        input_pico=pico(body.input, "input"),
        cached_input_pico=None if cached is None else pico(cached, "cached_input"),
        output_pico=pico(body.output, "output"),
    )
