"""What runs now: tenants, queues and workers, as they change."""

from typing import Any

from litestar import get

from gateway.console.access import page
from gateway.console.lists import address
from gateway.console.live_rows import (
    fallback_use,
    furthest,
    pool_rows,
    queue_sums,
    tenants_shown,
)
from gateway.console.troubles import troubles_of
from gateway.console.visit import Answer, Here, Visit, known
from gateway.console.worker_rows import unreachable, unserved, worker_rows
from gateway.domain.hosted import hosted_models
from gateway.domain.permissions import Permission
from gateway.serving.live_view import TENANTS_SHOWN_MAX

_PATH = "/console/live"


@get("/live", opt=page(Permission.LIVE_READ))
async def show_live(visit: Here) -> Answer:
    """The page."""
    return visit.show("live/page.html", **await _now(visit))


@get("/live/now", opt=page(Permission.LIVE_READ))
async def show_live_now(visit: Here) -> Answer:
    """The part of it that reads itself anew."""
    return visit.fragment("live/_now.html", **await _now(visit))


async def _now(visit: Visit) -> dict[str, Any]:
    """What all gateways know; while Redis is away what this one knows by itself."""
    view = visit.parts.live
    seen = await known(view.look())
    tokens = None if seen is None else await known(view.tokens_last_minute())
    live = view.alone() if seen is None else seen
    search = visit.query().text("search")
    workers = worker_rows(live["workers"])
    directory = visit.parts.directory
    models = [model.id for model in directory.models()]
    return {
        "as_of": f"{visit.now:%H:%M:%S}",
        "search": search,
        "now_path": address(f"{_PATH}/now", {"search": search}),
        "troubles": troubles_of(
            live["degraded"],
            unreachable=unreachable(workers),
            unserved=unserved(models, workers, hosted_models(directory.hosted_providers())),
        ),
        "tenants": None if seen is None else tenants_shown(live["tenants"], search),
        "active_max": TENANTS_SHOWN_MAX,
        "pools": pool_rows(live["pools"], workers),
        "queued": queue_sums(live["pools"]),
        "tokens_last_minute": tokens,
        "latency": live["latency"],
        "worst": {name: furthest(live["latency"], name) for name in ("ttft", "tpot")},
        "workers": workers,
        "hosted": live["hosted"],
        "fallback": fallback_use(live["hosted"]),
    }


PAGES = (show_live, show_live_now)
