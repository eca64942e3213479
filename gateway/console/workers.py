"""Workers: how they stand, taken out of dispatch and put back, registered and forgotten; and the
models, hosted providers and gateways beside them."""

from typing import Any

import msgspec
from litestar import get, post
from litestar.params import FromPath

from gateway.console.access import page
from gateway.console.fleet_rows import hosted_rows, model_rows
from gateway.console.forms import REFUSALS, Form
from gateway.console.gateway_rows import gateway_rows
from gateway.console.visit import Answer, Here, Visit, known
from gateway.console.worker_rows import is_last, worker_rows
from gateway.domain.permissions import Permission
from gateway.domain.tenant import EngineKind, Model, RequestClass, Worker
from gateway.serving.ports import LedgerUnavailable

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


@get("/workers/models/new", opt=page(Permission.FLEET_WRITE))
async def show_new_model(visit: Here) -> Answer:
    """The form to register a model."""
    asked = visit.parts.directory.model(visit.query().text("model"))
    values = {"default_output_tokens": 256} if asked is None else msgspec.structs.asdict(asked)
    return visit.show("workers/model.html", form=Form.filled(values))


@post("/workers/models", opt=page(Permission.FLEET_WRITE))
async def register_model(visit: Here) -> Answer:
    """Register it, or change the one of that id."""
    form = await visit.form()
    form.need("id", "context_tokens", "max_output_tokens")
    context, most = form.whole("context_tokens"), form.whole("max_output_tokens")
    default = form.whole("default_output_tokens")
    if not form.ok or context is None or most is None:
        return visit.show("workers/model.html", status=422, form=form)
    model = Model(
        id=form.text("id"),
        context_tokens=context,
        max_output_tokens=most,
        **({} if default is None else {"default_output_tokens": default}),
    )
    try:
        await visit.parts.administration.register_model(visit.actor, model)
    except REFUSALS as error:
        return visit.show("workers/model.html", status=422, form=form.refused(error))
    return visit.go(_PATH, said=f"The model {model.id} is registered.")


@post("/workers/hosted/{name:str}/enable", opt=page(Permission.FLEET_WRITE))
async def enable_hosted(visit: Here, name: FromPath[str]) -> Answer:
    """Let requests go to a hosted provider again."""
    await visit.parts.administration.enable_hosted_provider(visit.actor, name, True)
    return visit.go(_PATH, said=f"{name} is enabled: requests may go there again.")


@post("/workers/hosted/{name:str}/disable", opt=page(Permission.FLEET_WRITE))
async def disable_hosted(visit: Here, name: FromPath[str]) -> Answer:
    """Send it nothing new."""
    await visit.parts.administration.enable_hosted_provider(visit.actor, name, False)
    return visit.go(_PATH, said=f"{name} is disabled: nothing new goes there, what runs goes on.")


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
    """As the live view has it; while Redis is away what this gateway knows by itself."""
    parts = visit.parts
    seen = await known(parts.live.look())
    live = parts.live.alone() if seen is None else seen
    now_ms, book = visit.now_ms, parts.directory.price_book()
    rows = worker_rows(live["workers"])
    return {
        "rows": [{**row, "is_last": is_last(row, rows)} for row in rows],
        "is_known": seen is not None,
        "models": model_rows(parts.directory.models(), rows, book, now_ms),
        "hosted": hosted_rows(parts.directory.hosted_providers(), live["hosted"], book, now_ms),
        "gateways": await _gateways(visit),
    }


async def _gateways(visit: Visit) -> list[dict[str, Any]] | None:
    try:
        return gateway_rows(await visit.parts.gateways.census())
    except LedgerUnavailable:
        return None


PAGES = (
    list_workers,
    list_workers_now,
    show_new_worker,
    register_worker,
    drain_worker,
    resume_worker,
    remove_worker,
    show_new_model,
    register_model,
    enable_hosted,
    disable_hosted,
)
