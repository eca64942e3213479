"""Payments of invoices on the finance API: noted, too much, and taken back."""

from typing import Any

from finance_api import FinanceApi

from gateway.domain.account import Role

USE = {"prompt_tokens": 3_000_000, "cached_prompt_tokens": 1_000_000, "output_tokens": 1_234_567}
IN_JANUARY = "2026-01-15T12:00:00Z"


async def used(finance: FinanceApi, at: str = IN_JANUARY, **changes: Any) -> None:
    """One request: 2.00 for the prompt, 0.10 for what was cached, 4.94 for the output."""
    await finance.world.use(at, **{**USE, **changes})
    await finance.world.roll_up()


async def test_payments_settle_an_invoice(finance: FinanceApi) -> None:
    """Two parts make it paid; the same reference again is the same payment; more than what is
    outstanding is refused, in money."""
    await used(finance)
    issued = await finance.issued()
    path = f"/invoices/{issued['id']}/payments"
    part = {"amount": "8.00", "received_on": "2026-02-10", "reference": "bank-1"}
    first = await finance.ok("POST", path, part)
    assert (first["amount"], first["currency"], first["received_on"]) == (
        "8.00",
        "USD",
        "2026-02-10",
    )
    assert (first["invoice"]["status"], first["invoice"]["outstanding"]) == ("issued", "0.38")
    again = await finance.ok("POST", path, part)
    assert again["id"] == first["id"]
    other = await finance.refused("POST", path, {**part, "amount": "7.00"}, status=409)
    assert "bank-1" in other["detail"]
    much = await finance.refused(
        "POST", path, {**part, "reference": "bank-2", "amount": "0.39"}, status=409
    )
    assert much["detail"] == "only 0.38 USD of it are outstanding"
    rest = await finance.ok("POST", path, {**part, "reference": "bank-2", "amount": "0.38"})
    assert (rest["invoice"]["status"], rest["invoice"]["paid"]) == ("paid", "8.38")
    beyond = await finance.refused("POST", path, {**part, "reference": "bank-3"}, status=409)
    assert beyond["detail"] == "it is paid: nothing of it is outstanding"
    shown = await finance.ok("GET", f"/invoices/{issued['id']}")
    assert [each["reference"] for each in shown["payments"]] == ["bank-1", "bank-2"]
    await finance.refused("POST", f"/invoices/{issued['id']}/void", {"reason": "x"}, status=409)
    entries = (await finance.admin.json("GET", "/audit?action=invoice.payment"))["items"]
    assert len(entries) == 2


async def test_a_payment_is_taken_back_by_an_entry_of_its_own(finance: FinanceApi) -> None:
    """What was paid too much is told and must be meant; taken back, the invoice is owed again, and
    both entries stand. Again it is the same."""
    await used(finance)
    issued = await finance.issued()
    path = f"/invoices/{issued['number']}/payments"
    body = {"amount": "9.00", "received_on": "2026-02-10", "reference": "bank-1"}
    problem = await finance.refused("POST", path, body, status=409)
    assert problem["detail"] == "only 8.38 USD of it are outstanding"
    paid = await finance.ok("POST", path, {**body, "may_overpay": True})
    assert (paid["overpays"], paid["invoice"]["status"]) == (True, "paid")
    assert (paid["invoice"]["overpaid"], paid["invoice"]["outstanding"]) == ("0.62", "0.00")
    page = await finance.ok("GET", "/invoices")
    assert [each["overpaid"] for each in page["items"]] == ["0.62"]
    await finance.refused("POST", f"{path}/bank-1/reverse", {"reason": " "}, status=422)
    await finance.refused("POST", f"{path}/bank-2/reverse", {"reason": "x"}, status=404)
    back = await finance.ok("POST", f"{path}/{paid['id']}/reverse", {"reason": "not ours"})
    assert (back["amount"], back["reverses"], back["reason"]) == ("-9.00", paid["id"], "not ours")
    assert (back["invoice"]["status"], back["invoice"]["outstanding"]) == ("issued", "8.38")
    assert back["invoice"]["paid_at"] is None
    again = await finance.ok("POST", f"{path}/bank-1/reverse", {"reason": "not ours"})
    assert again == back
    await finance.refused("POST", f"{path}/bank-1/reverse", {"reason": "x"}, status=409)
    await finance.refused("POST", path, {**body, "may_overpay": True}, status=409)
    await finance.refused("POST", f"{path}/{back['id']}/reverse", {"reason": "x"}, status=409)
    shown = await finance.ok("GET", f"/invoices/{issued['id']}")
    assert [each["amount"] for each in shown["payments"]] == ["9.00", "-9.00"]
    entries = (await finance.admin.json("GET", "/audit?action=invoice.payment_taken_back"))["items"]
    assert [each["after"]["reverses"] for each in entries] == [paid["id"]]
    answer = await finance.call(
        "POST", f"{path}/bank-1/reverse", {"reason": "not ours"}, role=Role.OPERATOR
    )
    assert answer.status_code == 403


async def test_a_payment_that_cannot_be_noted(finance: FinanceApi) -> None:
    await used(finance)
    issued = await finance.issued()
    path = f"/invoices/{issued['id']}/payments"
    wrong: list[tuple[dict[str, object], str]] = [
        ({"amount": "0"}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"amount": "1.001"}, "amount"),
        ({"amount": 1.5}, "amount"),
        ({"received_on": "soon"}, "received_on"),
        ({"received_on": "2026-02-30"}, "received_on"),
        ({"received_on": "2025-12-31"}, "received_on"),
        ({"received_on": "0001-01-01"}, "received_on"),
        ({"received_on": "2126-11-20"}, "received_on"),
        ({"received_on": "9999-12-31"}, "received_on"),
        ({"reference": " "}, "reference"),
        ({"reference": None}, "reference"),
    ]
    for changes, param in wrong:
        body = {"amount": "1.00", "received_on": "2026-02-10", "reference": "b", **changes}
        problem = await finance.refused("POST", path, body, status=422)
        assert problem["param"] == param, changes
    assert (await finance.ok("GET", f"/invoices/{issued['id']}"))["payments"] == []
