"""An Administration on a fresh database."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.domain.tenant import Model


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on this test's database."""
    made = async_engine(database_url)
    yield made
    await made.dispose()


@pytest.fixture
async def administration(engine: AsyncEngine) -> Administration:
    """An Administration that knows the model `m`."""
    made = Administration(engine)
    await made.register_model("cli:test", Model(id="m", context_tokens=2048, max_output_tokens=512))
    return made
