"""Whether an invoice has simulated usage, as the finance API says it."""

from finance_api import FinanceApi

from billing.domain.invoicing.simulated import SIMULATED, SIMULATED_NOTE


async def test_a_customers_own_words_make_no_usage_simulated(finance: FinanceApi) -> None:
    """Only the notes of an invoice say that of it, drafted and issued, shown and listed."""
    profile = {"billing_profile": {"reference": SIMULATED_NOTE}}
    await finance.admin.json("PATCH", "/tenants/acme", profile)
    await finance.world.use("2026-01-15T12:00:00Z")
    await finance.world.use("2026-02-10T12:00:00Z", usage_flags=(SIMULATED,))
    await finance.world.roll_up()
    assert (await finance.draft())["simulated"] is False
    assert (await finance.issued())["simulated"] is False
    assert (await finance.issued("2026-02"))["simulated"] is True
    items = (await finance.ok("GET", "/invoices"))["items"]
    assert [each["simulated"] for each in items] == [True, False]
