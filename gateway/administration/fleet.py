"""Models and the workers that serve them."""

from msgspec.structs import replace
from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.adapters.directory_rows import MODEL_COLUMNS, WORKER_COLUMNS, model_from, worker_from
from gateway.adapters.tables import model as model_table
from gateway.adapters.tables import worker as worker_table
from gateway.administration.checks import check_model, check_worker
from gateway.administration.images import Image, key_change, model_image, worker_image
from gateway.administration.origins import check_no_provider_at
from gateway.administration.pages import LIMIT_DEFAULT, Page
from gateway.administration.store import Change, Store, verb
from gateway.domain.tenant import Model, Worker
from gateway.errors import NotFound, Unprocessable


class FleetVerbs(Store):
    """The verbs on models and workers. Registering what is registered so already does nothing."""

    @verb
    async def register_model(self, actor: str, model: Model) -> Model:
        """Add a model or change its token counts."""
        check_model(model)
        async with self._changing(actor) as change:
            before = await _model(change.db, model.id)
            if before == model:
                return model
            values = {
                "context_tokens": model.context_tokens,
                "max_output_tokens": model.max_output_tokens,
                "default_output_tokens": model.default_output_tokens,
                "removed_at": None,
            }
            statement = insert(model_table).values(id=model.id, **values)
            await change.db.execute(
                statement.on_conflict_do_update(index_elements=[model_table.c.id], set_=values)
            )
            await change.audit(
                "model.register",
                "model",
                model.id,
                before=None if before is None else model_image(before),
                after=model_image(model),
            )
        return model

    @verb
    async def list_models(
        self, limit: int = LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[Model]:
        """Models by id."""
        query = select(*MODEL_COLUMNS).where(model_table.c.removed_at.is_(None))
        return await self._page(query, model_table.c.id, model_from, limit, cursor)

    @verb
    async def register_worker(self, actor: str, worker: Worker) -> Worker:
        """Add a worker or change it. Its model must exist, and no hosted provider be at its server.
        A worker that drains goes on draining: only `drain_worker` ends that, however often it is
        registered again."""
        check_worker(worker)
        async with self._changing(actor) as change:
            if await _model(change.db, worker.model) is None:
                raise Unprocessable(f"model: there is no model {worker.model}", param="model")
            await check_no_provider_at(change.db, worker.url)
            before = await _worker(change.db, worker.id)
            if before is not None:
                worker = replace(worker, draining=before.draining)
            if before == worker:
                return worker
            values = {
                "model": worker.model,
                "url": worker.url,
                "kind": worker.kind,
                "engine": worker.engine,
                "api_key": worker.api_key,
                "draining": worker.draining,
                "class": worker.request_class,
                "removed_at": None,
            }
            statement = insert(worker_table).values(id=worker.id, **values)
            await change.db.execute(
                statement.on_conflict_do_update(index_elements=[worker_table.c.id], set_=values)
            )
            await _audit_worker(change, "worker.register", before, worker)
        return worker

    @verb
    async def drain_worker(self, actor: str, worker_id: str, draining: bool = True) -> Worker:
        """Send it nothing new (or, with False, something again); what runs on it goes on."""
        async with self._changing(actor) as change:
            before = await existing_worker(change.db, worker_id)
            if before.draining == draining:
                return before
            row = await change.db.execute(
                update(worker_table)
                .where(worker_table.c.id == worker_id)
                .values(draining=draining)
                .returning(*WORKER_COLUMNS)
            )
            after = worker_from(row.one())
            action = "worker.drain" if draining else "worker.resume"
            await _audit_worker(change, action, before, after)
        return after

    @verb
    async def remove_worker(self, actor: str, worker_id: str) -> None:
        """Forget a worker and its key; gateways send it nothing from within a second on."""
        async with self._changing(actor) as change:
            before = await existing_worker(change.db, worker_id)
            await change.db.execute(
                update(worker_table)
                .where(worker_table.c.id == worker_id)
                .values(removed_at=func.now(), api_key=None)
            )
            await _audit_worker(change, "worker.remove", before, None)

    @verb
    async def get_worker(self, worker_id: str) -> Worker:
        """The worker, unless it was removed."""
        async with self._reading() as db:
            return await existing_worker(db, worker_id)

    @verb
    async def list_workers(
        self, limit: int = LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[Worker]:
        """Workers by id, without those that were removed."""
        query = select(*WORKER_COLUMNS).where(worker_table.c.removed_at.is_(None))
        return await self._page(query, worker_table.c.id, worker_from, limit, cursor)


async def known_models(db: AsyncConnection) -> frozenset[str]:
    """Ids of the models that exist."""
    rows = await db.execute(select(model_table.c.id).where(model_table.c.removed_at.is_(None)))
    return frozenset(rows.scalars())


async def existing_worker(db: AsyncConnection, worker_id: str) -> Worker:
    """The worker of that id. Raises NotFound."""
    found = await _worker(db, worker_id)
    if found is None:
        raise NotFound(f"there is no worker {worker_id}")
    return found


async def _model(db: AsyncConnection, model_id: str) -> Model | None:
    rows = await db.execute(
        select(*MODEL_COLUMNS).where(
            model_table.c.id == model_id, model_table.c.removed_at.is_(None)
        )
    )
    row = rows.one_or_none()
    return None if row is None else model_from(row)


async def _worker(db: AsyncConnection, worker_id: str) -> Worker | None:
    rows = await db.execute(
        select(*WORKER_COLUMNS).where(
            worker_table.c.id == worker_id, worker_table.c.removed_at.is_(None)
        )
    )
    row = rows.one_or_none()
    return None if row is None else worker_from(row)


async def _audit_worker(
    change: Change, action: str, before: Worker | None, after: Worker | None
) -> None:
    def image(worker: Worker | None) -> Image | None:
        return None if worker is None else worker_image(worker)

    subject = after or before
    assert subject is not None  # noqa: S101 - every caller has one of them
    shown = image(after)
    if shown is not None:
        shown |= key_change(before, after)
    await change.audit(action, "worker", subject.id, before=image(before), after=shown)
