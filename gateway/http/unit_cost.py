"""`GET` and `POST /billing/v1/unit-cost`: the pool's bill, and whom it is for."""

import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromQuery

from billing.domain.unit_cost.question import Asked, CostBy, InvalidQuestion, question_of
from billing.domain.unit_cost.step_model import DEFAULT_PROFILE
from gateway.adapters.unit_costs import UnitCosts
from gateway.adapters.usage_reports import standing_view
from gateway.administration.unit_cost_view import unit_cost_view
from gateway.administration.views import View
from gateway.domain.instants import ms_of
from gateway.domain.permissions import Permission
from gateway.errors import Unprocessable
from gateway.http.access import needs
from gateway.http.admin_bodies import instant_ms, read_body
from gateway.http.openapi_operations import described
from gateway.http.openapi_unit_cost import UnitCostAnswer, UnitCostBody

_OFTEN = ("hosted", "coefficient")
_TIMES = ("since", "until")
_FIELDS = (
    *_TIMES, "model", "by", "pool_hours", "gpus", "from_samples", "price_per_gpu_hour", "currency",
    "operations_cost", *_OFTEN, "hosted_input", "hosted_output", "profile",
)  # fmt: skip


def unit_cost_handlers(costs: UnitCosts) -> list[HTTPRouteHandler]:
    """Both, without the path above them, and guarded by whoever mounts them."""

    @get(
        "/unit-cost",
        opt=described(UnitCostAnswer) | needs(Permission.MONEY_READ),
        tags=["unit-cost"],
    )
    async def get_unit_cost(
        request: Request[Any, Any, Any],
        *,
        since: FromQuery[str | None] = None,
        until: FromQuery[str | None] = None,
        model: FromQuery[str | None] = None,
        by: FromQuery[str] = CostBy.TENANT.value,
        pool_hours: FromQuery[str | None] = None,
        gpus: FromQuery[str | None] = None,
        from_samples: FromQuery[str] = "false",
        price_per_gpu_hour: FromQuery[str | None] = None,
        currency: FromQuery[str] = "USD",
        operations_cost: FromQuery[str] = "0",
        hosted: FromQuery[list[str] | None] = None,
        hosted_input: FromQuery[str | None] = None,
        hosted_output: FromQuery[str | None] = None,
        profile: FromQuery[str] = DEFAULT_PROFILE.name,
        coefficient: FromQuery[list[str] | None] = None,
    ) -> View:
        """Share the pool's bill of a time out over tenants, models, classes, days or hours of the
        day by the work of their requests, idle time apart. Work is computed by a step model and
        not measured. `since`, `until`, `price_per_gpu_hour` and one of `pool_hours`, `gpus` and
        `from_samples` are wanted; `hosted` and `coefficient` (`name=value`) may come often."""
        return await answer_asked(costs, _asked(request.query_params.multi_items()))

    @post(
        "/unit-cost",
        status_code=200,
        opt=described(UnitCostAnswer, body=UnitCostBody) | needs(Permission.MONEY_READ),
        tags=["unit-cost"],
    )
    async def post_unit_cost(request: Request[Any, Any, Any]) -> View:
        """The same, asked in a body, which may give the hours of each day. Changes nothing."""
        body = await read_body(request, UnitCostBody)
        values = msgspec.structs.asdict(body)
        hours, since, until = (values.pop(name) for name in ("hours", "since", "until"))
        asked = Asked(
            since_ms=instant_ms(since, field="since") or 0,
            until_ms=instant_ms(until, field="until") or 0,
            hours=None if hours is None else [(each.date, each.gpu_hours) for each in hours],
            **values,
        )
        return await answer_asked(costs, asked)

    return [get_unit_cost, post_unit_cost]


async def answer_asked(costs: UnitCosts, asked: Asked) -> View:
    """What both answer, and the console's page shows. Raises Unprocessable naming the field,
    StoreUnavailable."""
    try:
        question = question_of(asked, now_ms=time.time_ns() // 1_000_000)
    except InvalidQuestion as error:
        raise Unprocessable(f"{error.name}: {error}", param=error.name) from error
    found, complete = await costs.answer(question)
    standing = standing_view(
        complete, until_ms=question.until_ms, provisional_requests=found.provisional_requests
    )
    return {**unit_cost_view(found), **standing}


def _asked(given: Iterable[tuple[str, str]]) -> Asked:
    """From an address's parameters. Raises Unprocessable, naming the parameter."""
    values: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in given:
        if name not in _FIELDS:
            raise _wrong(name, f"{name[:40]!r} is no parameter here: {', '.join(_FIELDS)}")
        if name in values and name not in _OFTEN:
            raise _wrong(name, f"{name} is given twice")
        values[name].append(value)
    for name in (*_TIMES, "price_per_gpu_hour"):
        if name not in values:
            raise _wrong(name, f"{name} is wanted")
    since_ms, until_ms = (_instant(name, values.pop(name)[0]) for name in _TIMES)
    seen = values.pop("from_samples", ["false"])[0]
    if seen not in ("true", "false"):
        raise _wrong("from_samples", "from_samples must be true or false")
    return Asked(
        since_ms=since_ms,
        until_ms=until_ms,
        from_samples=seen == "true",
        hosted=tuple(values.pop("hosted", [])),
        coefficients=_named(values.pop("coefficient", [])),
        **{name: value for name, (value,) in values.items()},  # type: ignore[arg-type]
    )


def _instant(name: str, text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            return ms_of(at) or 0
    except (ValueError, OverflowError):
        pass
    raise _wrong(name, f"{name} must be a time like 2027-01-31T12:00:00Z")


def _named(pairs: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, is_one, value = pair.partition("=")
        if not is_one or name in found:
            raise _wrong("coefficient", "coefficient must be name=value, each name once")
        found[name] = value
    return found


def _wrong(name: str, what: str) -> Unprocessable:
    return Unprocessable(what, param=name)
