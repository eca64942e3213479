"""The seller of `weir dev`, so that an invoice can be issued out of the box. It is made up, and
says so; one that is there already is left alone."""

from datetime import datetime

from billing.domain.invoicing.issuing import Blocker
from billing.domain.invoicing.party import Seller
from gateway.adapters.postgres import async_engine
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.dev_seed import ACTOR
from gateway.domain.tenant import Tenant
from gateway.errors import NotFound

SELLER = Seller(
    name="Weir Demonstration (made up)",
    address=("1 Example Street", "Exampleville"),
    country="US",
    email="billing@weir.local",
    bank=("No account: this seller is made up. Say who sells with weir seller set.",),
)


async def seed_seller(database_url: str) -> None:
    """Say who sells where nobody has."""
    engine = async_engine(database_url, pooled=False)
    try:
        desk = InvoiceDesk(engine, _nothing_expected)
        try:
            await desk.seller()
        except NotFound:
            await desk.set_seller(ACTOR, SELLER)
    finally:
        await engine.dispose()


async def _nothing_expected(_tenant: Tenant, _end: datetime) -> list[Blocker]:
    return []
