"""What no invoice has: named beside a draft, in the way where nobody may know of it."""

from typing import Any

import pytest
from finance_api import FinanceApi

from billing.postgres.unbilled import load_unbilled
from gateway.administration import invoice_desk

JANUARY = "2026-01-10T00:00:00Z"


async def used(finance: FinanceApi, at: str = JANUARY, **changes: Any) -> None:
    await finance.world.use(at, **changes)
    await finance.world.roll_up()


BY = {
    None: "an invoice of that month in {}: draft it",
    "draft": "the draft of that month in {}: draft it again",
    "issued": "an invoice of a later month in {}, as late records: draft one",
}


def missing(
    month: str, currency: str, requests: int = 1, *, month_is: str | None = None
) -> dict[str, object]:
    """What is named, where that month's invoice in its currency is a draft, issued or none."""
    billed_by = BY[month_is].format(currency)
    return {"month": month, "currency": currency, "requests": requests, "billed_by": billed_by}


async def test_use_before_a_change_of_currency_is_in_the_way(finance: FinanceApi) -> None:
    """The month's draft in the new currency has nothing, and says what it has not. A draft in the
    old one answers it."""
    await used(finance)
    await finance.admin.json("PATCH", "/tenants/acme", {"currency": "EUR"})
    drafted = await finance.draft()
    assert (drafted["currency"], drafted["total"]) == ("EUR", "0.00")
    assert [(each["obstacle"], each["count"]) for each in drafted["blockers"]] == [("unbilled", 1)]
    assert drafted["unbilled"] == [missing("2026-01", "USD")]
    path = f"/invoices/{drafted['id']}/issue"
    problem = await finance.refused("POST", path, status=409)
    assert [each["obstacle"] for each in problem["blockers"]] == ["unbilled"]
    old = await finance.draft(currency="USD")
    assert (old["row_count"], old["unbilled"], old["blockers"]) == (1, [], [])
    issued = await finance.ok("POST", path)
    assert issued["override"] is None
    assert issued["unbilled"] == [missing("2026-01", "USD", month_is="draft")]
    await finance.ok("POST", f"/invoices/{old['id']}/issue")
    assert (await finance.ok("GET", f"/invoices/{issued['number']}"))["unbilled"] == []


async def test_it_is_looked_at_once_the_number_is_committed(
    finance: FinanceApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next number of the series waits for the commit, and not for a tenant's whole history."""
    await used(finance)
    seen: list[object] = []

    async def looking(*asked: Any) -> Any:
        seen.extend(await finance.world.query("SELECT status FROM invoice"))
        return await load_unbilled(*asked)

    drafted = await finance.draft()
    monkeypatch.setattr(invoice_desk, "load_unbilled", looking)
    await finance.ok("POST", f"/invoices/{drafted['id']}/issue")
    assert seen == [("paid",)]  # of nothing: an issued one is paid at once


async def test_an_override_of_it_is_on_record(finance: FinanceApi) -> None:
    """With its reason, and over what."""
    await used(finance)
    await finance.admin.json("PATCH", "/tenants/acme", {"currency": "EUR"})
    drafted = await finance.draft()
    body = {"override": {"reason": "billed by hand"}}
    issued = await finance.ok("POST", f"/invoices/{drafted['id']}/issue", body)
    assert [each["obstacle"] for each in issued["override"]["blockers"]] == ["unbilled"]


async def test_a_month_that_nobody_invoiced_is_named(finance: FinanceApi) -> None:
    """And holds up nothing; it is named until it has an invoice."""
    await used(finance)
    await used(finance, "2026-02-10T00:00:00Z")
    assert (await finance.issued("2026-01"))["unbilled"] == []
    march = await finance.issued("2026-03")
    assert march["unbilled"] == [missing("2026-02", "USD")]
    await finance.issued("2026-02")
    assert (await finance.ok("GET", f"/invoices/{march['id']}"))["unbilled"] == []


@pytest.mark.parametrize("currency", ["USD", "EUR"])
async def test_a_late_record_waits_for_an_invoice_of_its_currency(
    finance: FinanceApi, currency: str
) -> None:
    """Which the tenant's next is, unless its currency was changed meanwhile."""
    await used(finance)
    await finance.issued()
    await used(finance, "2026-01-11T00:00:00Z")
    await finance.admin.json("PATCH", "/tenants/acme", {"currency": currency})
    february = await finance.draft("2026-02")
    assert february["blockers"] == []
    billed = february["row_count"], february["unbilled"]
    named = [missing("2026-01", "USD", month_is="issued")]
    assert billed == ((1, []) if currency == "USD" else (0, named))


async def test_what_is_named_as_late_is_billed_by_a_later_month(finance: FinanceApi) -> None:
    """In its own currency: that of its month is issued, and drafted again changes nothing."""
    await used(finance)
    january = await finance.issued()
    await finance.admin.json("PATCH", "/tenants/acme", {"currency": "EUR"})
    await used(finance, "2026-01-11T00:00:00Z")
    february = await finance.issued("2026-02")
    assert february["unbilled"] == [missing("2026-01", "USD", month_is="issued")]
    again = await finance.draft("2026-01", currency="USD")
    assert (again["number"], again["row_count"]) == (january["number"], 1)
    late = await finance.draft("2026-02", currency="USD")
    assert (late["row_count"], late["blockers"]) == (1, [])
    await finance.ok("POST", f"/invoices/{late['id']}/issue")
    assert (await finance.ok("GET", f"/invoices/{february['id']}"))["unbilled"] == []


async def test_a_draft_of_the_other_currency_answers_for_what_it_has(finance: FinanceApi) -> None:
    """One that was made before there was use in it does not; made again it does, until there is
    more."""
    empty = await finance.draft(currency="EUR")
    assert empty["row_count"] == 0
    await finance.world.price(currency="EUR")
    await used(finance)
    await used(finance, "2026-01-11T00:00:00Z", currency="EUR")
    drafted = await finance.draft()
    path = f"/invoices/{drafted['id']}/issue"
    for count in (1, 2):
        problem = await finance.refused("POST", path, status=409)
        (found,) = problem["blockers"]
        assert (found["obstacle"], found["subject"], found["count"]) == ("unbilled", "EUR", count)
        assert "draft that month in EUR again" in found["what"]
        assert (await finance.draft(currency="EUR"))["row_count"] == count
        assert (await finance.draft())["blockers"] == []
        if count == 1:
            await used(finance, "2026-01-12T00:00:00Z", currency="EUR")
    await finance.ok("POST", path)


async def test_late_records_on_the_draft_are_not_the_months_use(finance: FinanceApi) -> None:
    """As many of another month as there is use that the draft has not."""
    await finance.world.price(currency="EUR")
    await finance.admin.json("PATCH", "/tenants/acme", {"currency": "EUR"})
    await used(finance, "2025-12-10T00:00:00Z", currency="EUR")
    await finance.issued("2025-12")
    await used(finance, "2025-12-11T00:00:00Z", currency="EUR")
    assert (await finance.draft(currency="EUR"))["row_count"] == 1
    await used(finance, currency="EUR")
    (found,) = (await finance.draft(currency="USD"))["blockers"]
    assert (found["obstacle"], found["subject"]) == ("unbilled", "EUR")
    assert (await finance.draft(currency="EUR"))["row_count"] == 2
    assert (await finance.draft(currency="USD"))["blockers"] == []


@pytest.mark.parametrize("changes", [{"billable": False}, {"final": False}, {"tenant_id": "other"}])
async def test_what_nobody_is_to_pay_yet_is_not_named(
    finance: FinanceApi, changes: dict[str, Any]
) -> None:
    """Unbillable, provisional, or another's; neither what came after the month."""
    await used(finance, **changes)
    await used(finance, "2026-03-01T00:00:00Z")
    assert (await finance.draft("2026-02"))["unbilled"] == []
