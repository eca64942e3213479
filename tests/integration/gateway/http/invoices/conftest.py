"""The finance API over a world in which invoices can be made."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest
from admin_api import AdminApi, client_of
from finance_api import FinanceApi
from invoice_world import InvoiceWorld
from litestar import Litestar

from billing.domain.invoicing.issuing import Blocker
from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.domain.tenant import BillingProfile, Tenant
from gateway.http.admin import admin_router
from gateway.http.billing import billing_router
from gateway.http.invoices import invoice_router
from gateway.http.problems import PROBLEM_HANDLERS

PROFILE = BillingProfile(
    legal_name="Acme Spółka z o.o.",
    address=("ul. Długa 44/50", "00-241 Warszawa"),
    country="PL",
    tax_id="PL5260250995",
    tax_rate="19",
    tax_name="VAT",
    payment_terms_days=14,
    reference="PO-4711",
)


@pytest.fixture
async def finance(database_url: str) -> AsyncIterator[FinanceApi]:
    """A seller, one price, and the tenant `acme`, taxed at 19 %; nothing is waited for unless the
    test says so."""
    async with _finance(database_url) as made:
        await made.world.open()
        yield made


@pytest.fixture
async def without_seller(database_url: str) -> AsyncIterator[FinanceApi]:
    """The same before anybody has said who sells or what is charged."""
    async with _finance(database_url) as made:
        yield made


@asynccontextmanager
async def _finance(database_url: str) -> AsyncIterator[FinanceApi]:
    # As in a gateway: who asks is looked up on connections that no invoice holds.
    engine = async_engine(database_url)
    desk_engine = async_engine(database_url, pool_size=InvoiceDesk.POOL_SIZE)
    world = InvoiceWorld(engine)
    administration = Administration(engine)
    await administration.create_tenant("cli:test", "acme", "Acme", billing_profile=PROFILE)
    expected: list[Blocker] = []

    async def still_to_come(_tenant: Tenant, _end: datetime) -> list[Blocker]:
        return expected

    app = Litestar(
        [
            admin_router(administration),
            billing_router(
                administration, more=[invoice_router(InvoiceDesk(desk_engine, still_to_come))]
            ),
        ],
        exception_handlers=PROBLEM_HANDLERS,
        openapi_config=None,
    )
    async with client_of(app) as client:
        yield FinanceApi(AdminApi(client, administration, {}), world, expected)
    await engine.dispose()
    await desk_engine.dispose()
