"""`weir dev` says who sells, once."""

from msgspec.structs import replace

from gateway.adapters.postgres import async_engine
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.administration.invoice_views import seller_view
from gateway.dev_seller import SELLER, _nothing_expected, seed_seller


async def test_a_made_up_seller_says_so_and_gives_way(database_url: str) -> None:
    """It can be printed as it is; a second start leaves what an administrator has set."""
    engine = async_engine(database_url)
    desk = InvoiceDesk(engine, _nothing_expected)
    await seed_seller(database_url)
    assert await desk.seller() == seller_view(SELLER)
    assert "made up" in SELLER.name
    own = {**seller_view(SELLER), "name": "Own GmbH"}
    await desk.set_seller("user:me", replace(SELLER, name="Own GmbH"))
    await seed_seller(database_url)
    assert await desk.seller() == own
    await engine.dispose()
