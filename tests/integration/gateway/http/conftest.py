"""The admin API in this process, on a fresh database, called as a client calls it."""

from collections.abc import AsyncIterator

import pytest
from admin_api import AdminApi, client_of
from litestar import Litestar
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.tenant import Model, Worker
from gateway.http.admin import admin_router
from gateway.http.billing import billing_router
from gateway.http.problems import PROBLEM_HANDLERS
from gateway.http.reconciliation import reconciliation_handler

ME = "cli:test"


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on this test's database."""
    made = async_engine(database_url)
    yield made
    await made.dispose()


@pytest.fixture
async def api(engine: AsyncEngine) -> AsyncIterator[AdminApi]:
    """The API, with the model `m`, the worker `w` and the tenant `acme`."""
    administration = Administration(engine)
    await administration.register_model(
        ME, Model(id="m", context_tokens=2048, max_output_tokens=512)
    )
    await administration.register_worker(
        ME, Worker(id="w", model="m", url="http://10.0.0.1:1", api_key="engine-secret")
    )
    await administration.create_tenant(ME, "acme", "Acme")
    app = Litestar(
        [
            admin_router(administration),
            billing_router(administration, more=[reconciliation_handler(engine)]),
        ],
        exception_handlers=PROBLEM_HANDLERS,
    )
    async with client_of(app) as client:
        yield AdminApi(client, administration, {})
