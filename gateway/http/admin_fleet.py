"""Models and workers on the admin API."""

import msgspec
from litestar import Controller, delete, get, post
from litestar.params import FromPath, FromQuery

from gateway.administration.views import View, model_view, page_view, worker_view
from gateway.domain.permissions import Permission
from gateway.domain.tenant import Model, Worker
from gateway.http.access import needs
from gateway.http.admin_bodies import DrainBody, ModelBody, WorkerBody, read_body
from gateway.http.admin_requests import AdminRequest, Verbs, actor_of
from gateway.http.openapi_answers import ModelAnswer, Page, WorkerAnswer
from gateway.http.openapi_operations import described


class ModelController(Controller):
    """`/admin/v1/models`."""

    path = "/models"
    tags = ("models",)

    @get(opt=described(Page[ModelAnswer]) | needs(Permission.FLEET_READ))
    async def list_models(
        self,
        administration: Verbs,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
    ) -> View:
        """Models by id."""
        page = await administration.list_models(limit, cursor)
        return page_view(page, [model_view(model) for model in page.items])

    @post(opt=described(ModelAnswer, body=ModelBody) | needs(Permission.FLEET_WRITE))
    async def register_model(self, request: AdminRequest, administration: Verbs) -> View:
        """Add a model or change its token counts."""
        body = await read_body(request, ModelBody)
        model = Model(**msgspec.structs.asdict(body))
        return model_view(await administration.register_model(actor_of(request), model))


class WorkerController(Controller):
    """`/admin/v1/workers`."""

    path = "/workers"
    tags = ("workers",)

    @get(opt=described(Page[WorkerAnswer]) | needs(Permission.FLEET_READ))
    async def list_workers(
        self,
        administration: Verbs,
        limit: FromQuery[int] = 100,
        cursor: FromQuery[str | None] = None,
    ) -> View:
        """Workers by id."""
        page = await administration.list_workers(limit, cursor)
        return page_view(page, [worker_view(worker) for worker in page.items])

    @post(opt=described(WorkerAnswer, body=WorkerBody) | needs(Permission.FLEET_WRITE))
    async def register_worker(self, request: AdminRequest, administration: Verbs) -> View:
        """Add a worker or change it."""
        body = await read_body(request, WorkerBody)
        worker = Worker(**msgspec.structs.asdict(body))
        return worker_view(await administration.register_worker(actor_of(request), worker))

    @get("/{worker_id:str}", opt=described(WorkerAnswer) | needs(Permission.FLEET_READ))
    async def get_worker(self, administration: Verbs, worker_id: FromPath[str]) -> View:
        """One worker."""
        return worker_view(await administration.get_worker(worker_id))

    @delete("/{worker_id:str}", opt=described() | needs(Permission.FLEET_WRITE))
    async def remove_worker(
        self, request: AdminRequest, administration: Verbs, worker_id: FromPath[str]
    ) -> None:
        """Forget a worker."""
        await administration.remove_worker(actor_of(request), worker_id)

    @post(
        "/{worker_id:str}/drain",
        status_code=200,
        opt=described(WorkerAnswer, body=DrainBody, body_required=False)
        | needs(Permission.FLEET_DRAIN),
    )
    async def drain_worker(
        self, request: AdminRequest, administration: Verbs, worker_id: FromPath[str]
    ) -> View:
        """Send it nothing new, or with `{"draining": false}` something again."""
        body = await read_body(request, DrainBody, empty=DrainBody())
        worker = await administration.drain_worker(actor_of(request), worker_id, body.draining)
        return worker_view(worker)
