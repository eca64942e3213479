"""`weir usage request`: the life of one request."""

import asyncio
from uuid import UUID

import click

from billing.postgres.request_life import EndedRequest
from gateway.adapters.births import Births, history_in
from gateway.adapters.postgres import async_engine
from gateway.adapters.presence import Gateways
from gateway.adapters.redis import connect_redis
from gateway.adapters.request_story import RequestStories, Underway
from gateway.adapters.second_copy_records import Copies
from gateway.administration.views import View
from gateway.commands.connection import REDIS_TIMEOUT_MS, Connection, connected
from gateway.commands.output import show_list, show_one
from gateway.errors import NotFound
from gateway.http.request_views import Sight, life_view
from gateway.http.requests import request_id_in

ALL = Sight(money=True, operation=True)
ATTEMPT_COLUMNS = (
    "attempt", "choice", "worker_id", "began_at", "ended_at", "outcome", "prompt_tokens",
    "output_tokens",
)  # fmt: skip
BELOW = ("tokens", "journal", "money")
"""Shown a field a line, below the name of the whole."""


@click.command("request")
@click.argument("request_id")
@connected
def show_request(connection: Connection, request_id: str) -> None:
    """The life of one request, by the id that its answer had."""
    identifier = request_id_in(request_id)
    found = None if identifier is None else asyncio.run(_found(connection, identifier))
    if found is None:
        raise NotFound(f"there is no request {request_id[:64]}")
    view = life_view(found, ALL)
    if connection.as_json:
        show_one(view, as_json=True)
        return
    show_one(_flat(view), as_json=False)
    if view["attempts"]:
        show_list(view["attempts"], ATTEMPT_COLUMNS, as_json=False)


def _flat(view: View) -> View:
    flat: View = {}
    for name, value in view.items():
        if name in BELOW and isinstance(value, dict):
            flat |= {f"{name}.{part}": each for part, each in value.items()}
        elif name != "attempts":
            flat[name] = value
    return flat


async def _found(connection: Connection, request_id: UUID) -> EndedRequest | Underway | None:
    engine = async_engine(connection.database_url, pooled=False)
    redis = None
    gateways, copies = None, None
    if connection.redis_url is not None:
        redis = connect_redis(connection.redis_url, timeout_ms=REDIS_TIMEOUT_MS)
        gateways = Gateways(redis, Births(redis, history_in(engine)))
        copies = Copies(redis)
    try:
        return await RequestStories(engine, gateways, copies).find(request_id)
    finally:
        await engine.dispose()
        if redis is not None:
            await redis.aclose()
