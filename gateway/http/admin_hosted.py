"""Hosted providers on the admin API."""

from typing import Any

from litestar import Controller, delete, get, post
from litestar.params import FromPath, FromQuery

from gateway.administration.hosted_prices import parse_price
from gateway.administration.views import View, hosted_view, page_view
from gateway.domain.hosted import HostedModel, HostedPrice, HostedProvider
from gateway.domain.permissions import Permission
from gateway.http.access import needs
from gateway.http.admin_bodies import (
    HostedBody,
    HostedModelBody,
    HostedPriceBody,
    body_from,
    read_body,
)
from gateway.http.admin_requests import AdminRequest, Verbs, actor_of
from gateway.http.openapi_answers import HostedAnswer, Page
from gateway.http.openapi_operations import described


class HostedController(Controller):
    """`/admin/v1/hosted`."""

    path = "/hosted"
    tags = ("hosted",)

    @get(opt=described(Page[HostedAnswer]) | needs(Permission.FLEET_READ))
    async def list_hosted(
        self,
        administration: Verbs,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
    ) -> View:
        """Hosted providers by name."""
        page = await administration.list_hosted_providers(limit, cursor)
        return page_view(page, [hosted_view(provider) for provider in page.items])

    @post(opt=described(HostedAnswer, body=HostedBody) | needs(Permission.FLEET_WRITE))
    async def register_hosted(self, request: AdminRequest, administration: Verbs) -> View:
        """Add a hosted provider or replace it; its key stays where the body names none."""
        body = await _hosted_body(request)
        registered = await administration.register_hosted_provider(
            actor_of(request), _provider(body), api_key=body.api_key
        )
        return hosted_view(registered)

    @get("/{name:str}", opt=described(HostedAnswer) | needs(Permission.FLEET_READ))
    async def get_hosted(self, administration: Verbs, name: FromPath[str]) -> View:
        """One hosted provider."""
        return hosted_view(await administration.get_hosted_provider(name))

    @delete("/{name:str}", opt=described() | needs(Permission.FLEET_WRITE))
    async def remove_hosted(
        self, request: AdminRequest, administration: Verbs, name: FromPath[str]
    ) -> None:
        """Forget a hosted provider and its key."""
        await administration.remove_hosted_provider(actor_of(request), name)


async def _hosted_body(request: AdminRequest) -> HostedBody:
    fields = await read_body(request, dict[str, Any])
    models = fields.get("models")
    # Each by itself: msgspec's own path does not say which model it is.
    for ours, theirs in models.items() if isinstance(models, dict) else ():
        body_from(theirs, HostedModelBody, prefix=f"models.{ours}")
    return body_from(fields, HostedBody)


def _provider(body: HostedBody) -> HostedProvider:
    return HostedProvider(
        name=body.name,
        url=body.url,
        models={ours: _model(ours, theirs) for ours, theirs in body.models.items()},
        rank=body.rank,
        enabled=body.enabled,
        connect_timeout_ms=body.connect_timeout_ms,
        first_event_timeout_ms=body.first_event_timeout_ms,
        stall_timeout_ms=body.stall_timeout_ms,
        output_limit_field=body.output_limit_field,
        extensions=tuple(body.extensions),
    )


def _model(ours: str, theirs: HostedModelBody) -> HostedModel:
    price = None if theirs.price is None else _price(theirs.price, f"models.{ours}.price")
    return HostedModel(name=theirs.name, price=price)


def _price(body: HostedPriceBody, field: str) -> HostedPrice:
    cached = body.cached_input
    return HostedPrice(
        input=parse_price(body.input, field=f"{field}.input"),
        output=parse_price(body.output, field=f"{field}.output"),
        cached_input=None if cached is None else parse_price(cached, field=f"{field}.cached_input"),
    )
