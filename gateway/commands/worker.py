"""`weir worker`: the engines that serve the models."""

import click

from gateway.administration.views import page_view, worker_view
from gateway.commands.api_key import with_api_key
from gateway.commands.connection import Connection, connected
from gateway.commands.output import show_one, show_page
from gateway.commands.paging import paged
from gateway.domain.tenant import EngineKind, RequestClass, Worker

COLUMNS = ("id", "model", "url", "kind", "engine", "class", "draining")


@click.group()
def worker() -> None:
    """Workers."""


@worker.command()
@click.argument("worker_id", metavar="WORKER")
@click.option("--model", required=True, help="The model that it serves.")
@click.option("--url", required=True, help="Its base address, without /v1.")
@click.option(
    "--kind",
    type=click.Choice([each.value for each in EngineKind]),
    default=EngineKind.SGLANG.value,
    show_default=True,
    help="What it speaks beyond OpenAI's HTTP.",
)
@click.option("--engine", default="sglang", show_default=True, help="Its name in reports.")
@click.option(
    "--class",
    "request_class",
    type=click.Choice([each.value for each in RequestClass]),
    help="Reserve it for requests of this class. Without, it serves both.",
)
@with_api_key
@connected
def add(
    connection: Connection,
    *,
    worker_id: str,
    model: str,
    url: str,
    kind: str,
    engine: str,
    request_class: str | None,
    api_key: str | None,
) -> None:
    """Add a worker, or change it."""
    wanted = Worker(
        id=worker_id,
        model=model,
        url=url,
        kind=EngineKind(kind),
        engine=engine,
        api_key=api_key,
        request_class=None if request_class is None else RequestClass(request_class),
    )
    added = connection.run(
        lambda administration: administration.register_worker(connection.actor, wanted)
    )
    show_one(worker_view(added), as_json=connection.as_json)


@worker.command("list")
@paged
@connected
def list_workers(connection: Connection, limit: int, cursor: str | None) -> None:
    """Workers by id."""
    page = connection.run(lambda administration: administration.list_workers(limit, cursor))
    view = page_view(page, [worker_view(each) for each in page.items])
    show_page(view, COLUMNS, as_json=connection.as_json)


@worker.command()
@click.argument("worker_id", metavar="WORKER")
@click.option("--resume", is_flag=True, help="Send it requests again.")
@connected
def drain(connection: Connection, worker_id: str, resume: bool) -> None:
    """Send it nothing new; what runs on it goes on."""
    drained = connection.run(
        lambda administration: administration.drain_worker(connection.actor, worker_id, not resume)
    )
    show_one(worker_view(drained), as_json=connection.as_json)


@worker.command()
@click.argument("worker_id", metavar="WORKER")
@connected
def remove(connection: Connection, worker_id: str) -> None:
    """Forget a worker."""
    connection.run(lambda administration: administration.remove_worker(connection.actor, worker_id))
    show_one({"id": worker_id, "removed": True}, as_json=connection.as_json)
