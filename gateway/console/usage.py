"""What was used, by tenant, key, model or class, over time: plots, tables and their files.

A tenant's own page is the same with `held_to`: it shows, and finds, nothing of anybody else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from litestar import get

from billing.postgres.usage_charts import UsageChart
from gateway.adapters.completeness import Found
from gateway.adapters.usage_reports import standing_view
from gateway.administration.views import View
from gateway.console.access import page
from gateway.console.downloads import file_response
from gateway.console.forms import Form
from gateway.console.usage_ask import (
    GROUPS,
    PERIODS,
    STEPS,
    Ask,
    place_text,
    read_ask,
)
from gateway.console.usage_figures import (
    MEASURES,
    Label,
    Told,
    amounts_of,
    groups_file,
    plot_file,
    plot_of,
    size_of,
    told_label,
)
from gateway.console.visit import Answer, Here, Visit, known
from gateway.domain.instants import ms_of
from gateway.domain.permissions import Permission
from gateway.domain.tenant import RequestClass
from gateway.errors import LimitReached, NotFound, StoreUnavailable, Unprocessable

GROUPS_ON_PAGE = 100
GROUPS_IN_FILE = 50_000
KEYS_SUGGESTED = 1_000
TENANTS_SUGGESTED = 12
TENANTS_OWN_GROUPS = ("key", "model", "class")


class UsageFile(StrEnum):
    """The files of the page, by the names that they have below its path."""

    GROUPS = "groups.csv"
    OVER_TIME = "over-time.csv"


@get("/usage", opt=page(Permission.USAGE_READ))
async def show_usage(visit: Here) -> Answer:
    """The page of all tenants."""
    return await usage_page(visit, "/console/usage")


@get("/usage/tenants", opt=page(Permission.TENANTS_READ))
async def suggest_tenants(visit: Here) -> Answer:
    """Tenants whose id or name holds what was typed."""
    typed = visit.query().text("tenant_id")
    found = await visit.parts.administration.list_tenants(TENANTS_SUGGESTED, search=typed or None)
    return visit.fragment("usage/_tenants.html", tenants=found.items)


@get("/usage/groups.csv", opt=page(Permission.USAGE_READ))
async def download_groups(visit: Here) -> Answer:
    """The page's table as a file, of all its pages."""
    return await usage_file(visit, UsageFile.GROUPS)


@get("/usage/over-time.csv", opt=page(Permission.USAGE_READ))
async def download_plot(visit: Here) -> Answer:
    """What the page's plot draws, as a file."""
    return await usage_file(visit, UsageFile.OVER_TIME)


@dataclass(frozen=True)
class _View:
    """What was asked for and found."""

    ask: Ask
    now: datetime
    label: Label
    chart: Any
    found: Found

    @property
    def standing(self) -> View:
        """Whether all is in it."""
        until = None if self.ask.until >= self.now else ms_of(self.ask.until)
        provisional = self.chart.whole.provisional_requests
        return standing_view(self.found, until_ms=until, provisional_requests=provisional)


async def usage_page(visit: Visit, path: str, *, held_to: str | None = None) -> Answer:
    """The page at `path`, whose files lie below it; where `held_to` is a tenant, of that alone."""
    form = visit.query()
    groups = tuple(GROUPS) if held_to is None else TENANTS_OWN_GROUPS
    ask = read_ask(form, _now(visit), groups=groups)
    _check(visit, form, ask, held_to)
    shown: dict[str, Any] = {"view": None, "away": None}
    status = 200 if form.ok else 422
    if form.ok:
        try:
            view = await _look(visit, ask, held_to, limit=GROUPS_ON_PAGE)
            shown["view"] = _context(visit, view)
        except (StoreUnavailable, LimitReached) as error:
            status, shown["away"] = error.status, error.message
    return visit.show(
        "usage/page.html",
        status=status,
        path=path,
        held_to=held_to,
        requests_query=_requests_query(ask),
        ask=ask,
        form=_filled(form, ask),
        keys=await _keys(visit, held_to or ask.tenant_id),
        **_choices(visit, ask, groups),
        **shown,
    )


async def usage_file(visit: Visit, which: UsageFile, *, held_to: str | None = None) -> Answer:
    """One of the page's files. Raises Unprocessable for a view that the page would not show either,
    StoreUnavailable, LimitReached."""
    form = visit.query()
    groups = tuple(GROUPS) if held_to is None else TENANTS_OWN_GROUPS
    ask = read_ask(form, _now(visit), groups=groups)
    _check(visit, form, ask, held_to)
    for field, message in form.errors.items():
        raise Unprocessable(f"{field}: {message}", param=field)
    listed = GROUPS_IN_FILE if which is UsageFile.GROUPS else 0
    view = await _look(visit, ask, held_to, limit=listed, whole=True)
    told = await _told(visit, ask, view.chart, held_to)
    if which is UsageFile.GROUPS:
        content = groups_file(ask, view.chart, told, money=visit.may(Permission.INVOICES_READ))
    else:
        content = plot_file(plot_of(ask, view.chart, view.now, told_label(told)))
    stem = which.removesuffix(".csv")
    return file_response(
        content, f"usage-{stem}-by-{ask.by}-{ask.first}-{ask.last}.csv", "text/csv"
    )


async def _look(
    visit: Visit, ask: Ask, held_to: str | None, *, limit: int, whole: bool = False
) -> _View:
    chart, found = await visit.parts.usage.chart(
        _held(ask, held_to).chosen,
        width=ask.width,
        by=GROUPS[ask.by],
        measure=ask.measure,
        limit=limit,
        after=None if whole else ask.after,
        asked_by=held_to,
    )
    label = await _labels(visit, ask, held_to)
    return _View(ask, _now(visit), label, chart, found)


def _held(ask: Ask, held_to: str | None) -> Ask:
    if held_to is None:
        return ask
    return Ask(**{**ask.__dict__, "tenant_id": held_to})


def _check(visit: Visit, form: Form, ask: Ask, held_to: str | None) -> None:
    """Note a tenant that there is none of. Raises NotFound for any that is not one's own."""
    if held_to is not None:
        if ask.tenant_id not in (None, held_to):
            raise NotFound("there is no such page")
    elif ask.tenant_id is not None and visit.parts.directory.tenant(ask.tenant_id) is None:
        form.errors["tenant_id"] = "is the id of no tenant: choose one that is suggested"


def _context(visit: Visit, view: _View) -> dict[str, Any]:
    chart, ask = view.chart, view.ask
    total = size_of(chart.whole, ask.measure)
    return {
        "plot": plot_of(ask, chart, view.now, view.label),
        "rows": [
            {
                "id": name,
                "label": view.label(name),
                "counts": counts,
                "size": size_of(counts, ask.measure),
                "costs": amounts_of(counts.costs),
            }
            for name, counts in chart.groups
        ],
        "whole": chart.whole,
        "whole_size": total,
        "costs": amounts_of(chart.whole.costs),
        "group_count": chart.group_count,
        "next": place_text(chart.next),
        "standing": view.standing,
        "money": visit.may(Permission.INVOICES_READ),
    }


def _choices(visit: Visit, ask: Ask, groups: Sequence[str]) -> dict[str, Any]:
    models = {model.id for model in visit.parts.directory.models()} | (
        {ask.model} if ask.model else set()
    )
    steps = [(name, f"by {step.name}") for name, step in STEPS.items()]
    return {
        "periods": PERIODS,
        "groups": groups,
        "group_options": [(name, f"by {name}") for name in groups],
        "step_options": [("", "as fits"), *steps],
        "step_text": STEPS[ask.step].name,
        "steps": STEPS,
        "measure_text": MEASURES[ask.measure],
        "measure_options": [(each.value, text) for each, text in MEASURES.items()],
        "model_options": [("", "all models"), *((name, name) for name in sorted(models))],
        "class_options": [
            ("", "both classes"),
            *((each.value, each.value) for each in RequestClass),
        ],
    }


def _requests_query(ask: Ask) -> str:
    """The list of the single requests of the same view."""
    values = {
        "tenant_id": ask.tenant_id,
        "key_id": ask.key_id,
        "model": ask.model,
        "class": ask.request_class,
        "from": f"{ask.since:%Y-%m-%dT%H:%M}",
        "to": f"{ask.until:%Y-%m-%dT%H:%M}",
    }
    return urlencode({name: value for name, value in values.items() if value})


def _filled(form: Form, ask: Ask) -> Form:
    """The form as it is sent, with what is meant where nothing was said."""
    if form.ok:
        values = {
            "from": ask.first, "to": ask.last, "by": ask.by, "step": ask.step_wished,
            "show": ask.measure.value,
        }  # fmt: skip
        form.values |= Form.filled(values).values
    return form


async def _keys(visit: Visit, tenant_id: str | None) -> list[tuple[str, str]]:
    """The keys of one tenant, to choose from."""
    if tenant_id is None or not visit.may(Permission.KEYS_READ):
        return []
    try:
        reading = visit.parts.administration.list_keys(tenant_id, KEYS_SUGGESTED)
        found = await known(reading)
    except NotFound:
        return []
    return [] if found is None else [(key.id, key.name) for key in found.items]


async def _labels(visit: Visit, ask: Ask, held_to: str | None) -> Label:
    """What groups are called beside their ids."""
    if ask.by == "tenant":
        directory = visit.parts.directory

        def of_tenant(name: str) -> str:
            tenant = directory.tenant(name)
            return name if tenant is None else tenant.name

        return of_tenant
    names = dict(await _keys(visit, held_to or ask.tenant_id)) if ask.by == "key" else {}
    return lambda name: names.get(name, name)


async def _told(visit: Visit, ask: Ask, chart: UsageChart, held_to: str | None) -> Told:
    """What a file tells of tenants and keys beside their ids; nothing of what is no more there.
    Raises StoreUnavailable."""
    groups = list(dict.fromkeys([*(name for name, _ in chart.groups), *chart.top]))
    if ask.by == "tenant":
        found = map(visit.parts.directory.tenant, groups)
        return {tenant.id: (tenant.name,) for tenant in found if tenant is not None}
    if ask.by == "key" and visit.may(Permission.KEYS_READ):
        keys = await visit.parts.administration.name_keys(groups)
        return {name: key for name, key in keys.items() if held_to in (None, key.tenant_id)}
    return {}


def _now(visit: Visit) -> datetime:
    return datetime.fromtimestamp(visit.parts.clock.now_ms() / 1000, tz=UTC)


PAGES = (show_usage, suggest_tenants, download_groups, download_plot)
