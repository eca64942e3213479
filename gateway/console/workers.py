"""Workers: how they stand, taken out of dispatch and put back, registered and forgotten."""

from operator import attrgetter, itemgetter
from typing import Any

from litestar import get, post
from litestar.params import FromPath

from gateway.console.access import page
from gateway.console.forms import REFUSALS, Form
from gateway.console.visit import Answer, Here, Visit, known
from gateway.domain.permissions import Permission
from gateway.domain.tenant import EngineKind, RequestClass, Worker

_PATH = "/console/workers"
_ENGINES = ("sglang", "local", "simulated", "openai")


@get("/workers", opt=page(Permission.FLEET_READ))
async def list_workers(visit: Here) -> Answer:
    """Every worker, how it stands now."""
    return visit.show("workers/list.html", **await _now(visit))


@get("/workers/now", opt=page(Permission.FLEET_READ))
async def list_workers_now(visit: Here) -> Answer:
    """The part of it that reads itself anew."""
    return visit.fragment("workers/_now.html", **await _now(visit))


@post("/workers/{worker_id:str}/drain", opt=page(Permission.FLEET_DRAIN))
async def drain_worker(visit: Here, worker_id: FromPath[str]) -> Answer:
    """Send it nothing new."""
    await visit.parts.administration.drain_worker(visit.actor, worker_id, True)
    return visit.go(
        _PATH, said=f"{worker_id} drains: it gets nothing new, what runs on it goes on."
    )


@post("/workers/{worker_id:str}/resume", opt=page(Permission.FLEET_DRAIN))
async def resume_worker(visit: Here, worker_id: FromPath[str]) -> Answer:
    """Send it something again."""
    await visit.parts.administration.drain_worker(visit.actor, worker_id, False)
    return visit.go(_PATH, said=f"{worker_id} takes requests again.")


@post("/workers/{worker_id:str}/remove", opt=page(Permission.FLEET_WRITE))
async def remove_worker(visit: Here, worker_id: FromPath[str]) -> Answer:
    """Forget it."""
    await visit.parts.administration.remove_worker(visit.actor, worker_id)
    return visit.go(_PATH, said=f"{worker_id} is removed.")


@get("/workers/new", opt=page(Permission.FLEET_WRITE))
async def show_new_worker(visit: Here) -> Answer:
    """The form to register one."""
    return await _form_page(visit, Form.filled({"engine": "sglang", "kind": EngineKind.SGLANG}))


@post("/workers", opt=page(Permission.FLEET_WRITE))
async def register_worker(visit: Here) -> Answer:
    """Register it, or change the one of that id."""
    form = await visit.form()
    form.need("id", "model", "url")
    if not form.ok:
        return await _form_page(visit, form, status=422)
    reserved = form.optional("class")
    try:
        worker = Worker(
            id=form.text("id"),
            model=form.text("model"),
            url=form.text("url"),
            kind=EngineKind(form.text("kind")),
            engine=form.text("engine"),
            api_key=form.optional("api_key"),
            request_class=None if reserved is None else RequestClass(reserved),
        )
    except ValueError:
        form.errors[""] = "The kind or the class is none that there is."
        return await _form_page(visit, form, status=422)
    try:
        await visit.parts.administration.register_worker(visit.actor, worker)
    except REFUSALS as error:
        return await _form_page(visit, form.refused(error), status=422)
    return visit.go(
        _PATH, said=f"{worker.id} is registered; it is sent requests once it is healthy."
    )


async def _form_page(visit: Visit, form: Form, *, status: int = 200) -> Answer:
    models = [model.id for model in visit.parts.directory.models()]
    return visit.show(
        "workers/new.html",
        status=status,
        form=form,
        models=[(name, name) for name in models],
        kinds=[(kind.value, kind.value) for kind in EngineKind],
        classes=[("", "both classes"), *((each.value, each.value) for each in RequestClass)],
        engines=[(name, name) for name in _ENGINES],
    )


async def _now(visit: Visit) -> dict[str, Any]:
    """Rows as the live view has them; while Redis is away as they are registered, figures not
    known."""
    live = await known(visit.parts.live.look())
    if live is not None:
        workers: Any = live["workers"]
        return {"rows": sorted(workers, key=itemgetter("id")), "is_known": True}
    registered = sorted(visit.parts.directory.workers(), key=attrgetter("id"))
    rows = [
        dict.fromkeys(_FIGURES)
        | {
            "id": worker.id,
            "model": worker.model,
            "engine": worker.engine,
            "draining": worker.draining,
            "class": worker.request_class,
        }
        for worker in registered
    ]
    return {"rows": rows, "is_known": False}


_FIGURES = (
    "healthy",
    "running",
    "waiting",
    "in_flight",
    "kv_used_tokens",
    "kv_total_tokens",
    "load_age_ms",
    "version",
    "places",
)

PAGES = (
    list_workers,
    list_workers_now,
    show_new_worker,
    register_worker,
    drain_worker,
    resume_worker,
    remove_worker,
)
