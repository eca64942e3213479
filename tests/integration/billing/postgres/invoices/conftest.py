"""A world in which invoices can be made."""

from collections.abc import AsyncIterator

import pytest
from invoice_world import InvoiceWorld

from gateway.adapters.postgres import async_engine


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[InvoiceWorld]:
    """A database with a seller and one price."""
    engine = async_engine(database_url)
    made = InvoiceWorld(engine)
    await made.open()
    yield made
    await engine.dispose()
