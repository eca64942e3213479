"""What a million tokens cost to make: a model of the pool's bill, not a measurement."""

from datetime import timedelta
from typing import Any

from litestar import get

from billing.domain.unit_cost.question import LIST, Asked, CostBy
from billing.domain.unit_cost.step_model import DEFAULT_PROFILE, PROFILES
from gateway.administration.views import View
from gateway.console.access import page
from gateway.console.forms import Form
from gateway.console.money_forms import CURRENCIES, TOLD
from gateway.console.visit import Answer, Here, Visit
from gateway.domain.permissions import Permission
from gateway.http.unit_cost import answer_asked

_WEEK = timedelta(days=7)
_BYS = [(each.value, each.value) for each in CostBy]
_COSTS = (
    ("million_tokens", "A million tokens, in and out together"),
    ("million_output_all", "A million output tokens, all costs on them"),
    ("million_prompt", "A million prompt tokens: prefill"),
    ("million_uncached", "A million prompt tokens that no cache had: prefill"),
    ("million_output", "A million output tokens: decode and KV"),
    ("request", "A request"),
)
"""The rows of the table of costs, by the names that the answer has for them."""


@get("/money/unit-cost", opt=page(Permission.MONEY_READ))
async def show_unit_cost(visit: Here) -> Answer:
    """The form; asked with a price, the answer too."""
    query = visit.query()
    if not query.values:
        return _page(visit, _empty(visit))
    query.need("since", "until", "price_per_gpu_hour")
    since_ms, until_ms = query.instant_ms("since"), query.instant_ms("until")
    if not query.ok or since_ms is None or until_ms is None:
        return _page(visit, query, status=422)
    try:
        answer = await answer_asked(visit.parts.unit_costs, _asked(query, since_ms, until_ms))
    except TOLD as error:
        return _page(visit, query.refused(error), status=error.status)
    return _page(visit, query, answer=answer)


def _asked(query: Form, since_ms: int, until_ms: int) -> Asked:
    compared = [*query.all("hosted")]
    return Asked(
        since_ms=since_ms,
        until_ms=until_ms,
        price_per_gpu_hour=query.text("price_per_gpu_hour"),
        currency=query.optional("currency") or "USD",
        operations_cost=query.optional("operations_cost") or "0",
        model=query.optional("model"),
        by=query.optional("by") or CostBy.TENANT.value,
        pool_hours=query.optional("pool_hours"),
        gpus=query.optional("gpus"),
        from_samples=query.flag("from_samples"),
        hosted=tuple(compared),
        hosted_input=query.optional("hosted_input"),
        hosted_output=query.optional("hosted_output"),
        profile=query.optional("profile") or DEFAULT_PROFILE.name,
    )


def _empty(visit: Visit) -> Form:
    """The last seven days, up to this minute: of a system that is new, what it has done today."""
    until = visit.now.replace(second=0, microsecond=0)
    return Form.filled(
        {
            "since": f"{until - _WEEK:%Y-%m-%dT%H:%M}",
            "until": f"{until:%Y-%m-%dT%H:%M}",
            "by": CostBy.TENANT.value,
            "currency": "USD",
            "operations_cost": "0",
            "from_samples": "1",
            "hosted": LIST,
            "profile": DEFAULT_PROFILE.name,
        }
    )


def _page(visit: Visit, form: Form, *, status: int = 200, answer: View | None = None) -> Answer:
    models = [(model.id, model.id) for model in visit.parts.directory.models()]
    providers = [each.name for each in visit.parts.directory.hosted_providers()]
    return visit.show(
        "unit_cost/page.html",
        status=status,
        form=form,
        models=[("", "all models"), *models],
        currencies=CURRENCIES,
        bys=_BYS,
        profiles=[(name, name) for name in PROFILES],
        providers=providers,
        list_name=LIST,
        costs=_COSTS,
        answer=answer,
        plot=None if answer is None else _plot(answer),
    )


def _plot(answer: View) -> dict[str, Any]:
    """Utilisation by hour of the day, in percent."""
    hours = answer["hours"]
    return {
        "x": [each["hour"] for each in hours],
        "unit": "%",
        "kind": "bars",
        "time": False,
        "series": [
            {"name": "Utilisation", "values": [percent(each["utilisation"]) for each in hours]}
        ],
    }


def percent(share: str | None) -> float | None:
    """A share such as `0.123456` in percent with one decimal, `12.3`; None stays None."""
    return None if share is None else round(float(share) * 100, 1)


PAGES = (show_unit_cost,)
