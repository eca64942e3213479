from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.invoicing.lifecycle import (
    RefusedChange,
    Standing,
    Status,
    WrongDay,
    check_received,
    credited,
    issued,
    paid,
    taken_back,
    voided,
)

DRAFT = Standing(total_minor=1_000)
ISSUED = issued(DRAFT)


def test_v29_issuing_or_voiding_again_changes_nothing() -> None:
    """A second run is a silent no-op, whatever came between."""
    assert ISSUED.status is Status.ISSUED
    assert issued(ISSUED) == ISSUED
    assert issued(paid(ISSUED, 1_000)) == paid(ISSUED, 1_000)
    assert voided(voided(ISSUED)) == voided(ISSUED)


def test_it_is_paid_when_payments_and_credits_are_its_total() -> None:
    """Not before the last of them."""
    part = paid(ISSUED, 400)
    assert (part.status, part.outstanding_minor) == (Status.ISSUED, 600)
    assert credited(part, 599).status is Status.ISSUED
    whole = credited(part, 600)
    assert (whole.status, whole.outstanding_minor) == (Status.PAID, 0)
    assert paid(part, 600).status is Status.PAID
    assert issued(Standing(total_minor=0)).status is Status.PAID


def test_what_was_paid_may_be_credited() -> None:
    """Then money is owed back: it stays paid, nothing is outstanding, and so much is overpaid."""
    back = credited(paid(ISSUED, 1_000), 300)
    assert (back.status, back.outstanding_minor, back.overpaid_minor) == (Status.PAID, 0, 300)


def test_a_payment_of_too_much_is_noted_where_that_is_meant() -> None:
    """And of what is paid already; a draft or a void one has nothing to pay back."""
    much = paid(ISSUED, 1_001, may_overpay=True)
    assert (much.status, much.outstanding_minor, much.overpaid_minor) == (Status.PAID, 0, 1)
    assert paid(much, 5, may_overpay=True).overpaid_minor == 6
    assert DRAFT.overpaid_minor == voided(ISSUED).overpaid_minor == ISSUED.overpaid_minor == 0


def test_a_payment_that_is_taken_back_is_owed_again() -> None:
    """Back from paid only where something is outstanding then; void once nothing was paid."""
    part = paid(ISSUED, 400)
    assert taken_back(paid(part, 600), 600) == part
    assert taken_back(paid(ISSUED, 1_000), 1_000) == ISSUED
    assert voided(taken_back(part, 400)).status is Status.VOID
    twice = paid(paid(ISSUED, 1_000), 7, may_overpay=True)
    assert taken_back(twice, 7) == paid(ISSUED, 1_000)
    for standing in (DRAFT, voided(ISSUED)):
        with pytest.raises(RefusedChange, match="taken back needs"):
            taken_back(standing, 0)


def test_v16_credits_are_never_more_than_the_total() -> None:
    """By a cent, at once or together; nor is a payment more than what is outstanding."""
    with pytest.raises(RefusedChange, match="never more"):
        credited(ISSUED, 1_001)
    with pytest.raises(RefusedChange, match="never more"):
        credited(credited(ISSUED, 400), 601)
    with pytest.raises(RefusedChange, match="only 600 minor units"):
        paid(credited(ISSUED, 400), 601)
    with pytest.raises(RefusedChange, match="it is paid: nothing of it is outstanding"):
        paid(paid(ISSUED, 1_000), 1)
    with pytest.raises(RefusedChange, match="more than nothing"):
        paid(ISSUED, 0)


def test_void_is_only_what_nobody_paid_or_credited() -> None:
    """An invoice of nothing is paid at once, and can still be void."""
    assert voided(ISSUED).status is Status.VOID
    assert voided(ISSUED).outstanding_minor == 0
    assert voided(issued(Standing(total_minor=0))).status is Status.VOID
    for touched in (paid(ISSUED, 1), credited(ISSUED, 1)):
        with pytest.raises(RefusedChange, match="stand against it"):
            voided(touched)


def test_a_draft_is_neither_paid_credited_nor_void() -> None:
    with pytest.raises(RefusedChange, match="a payment needs"):
        paid(DRAFT, 1)
    with pytest.raises(RefusedChange, match="a credit note needs"):
        credited(DRAFT, 1)
    with pytest.raises(RefusedChange, match="a draft is not void"):
        voided(DRAFT)
    assert DRAFT.outstanding_minor == 0


def test_what_is_void_stays_void() -> None:
    void = voided(ISSUED)
    with pytest.raises(RefusedChange, match="draft a new one"):
        issued(void)
    with pytest.raises(RefusedChange, match="this one is void"):
        paid(void, 1)
    with pytest.raises(RefusedChange, match="this one is void"):
        credited(void, 1)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["issue", "void", "pay", "credit", "overpay", "back"]), st.integers(-5, 60)
    ),
    max_size=12,
)


@given(st.integers(0, 100), CHANGES)
def test_no_order_of_changes_breaks_an_invoice(total: int, changes: list[tuple[str, int]]) -> None:
    """It never goes back but where a payment is taken back, credits stay within the total, payments
    within what was outstanding unless more was meant, and it is paid exactly when both cover it."""
    now = Standing(total_minor=total)
    noted: list[int] = []
    is_meant = False
    order = {Status.DRAFT: 0, Status.ISSUED: 1, Status.PAID: 2, Status.VOID: 3}
    for what, amount in changes:
        before = now
        try:
            match what:
                case "issue":
                    now = issued(now)
                case "void":
                    now = voided(now)
                case "pay":
                    now = paid(now, amount)
                    noted.append(amount)
                case "overpay":
                    now = paid(now, amount, may_overpay=True)
                    noted.append(amount)
                    is_meant = True
                case "back":
                    if noted:
                        now = taken_back(now, noted.pop())
                case _:
                    now = credited(now, amount)
        except RefusedChange:
            assert now == before
        assert order[now.status] >= order[before.status] or what == "back"
        assert now.outstanding_minor == 0 or now.overpaid_minor == 0
        assert 0 <= now.credited_minor <= total
        assert 0 <= now.paid_minor == sum(noted)
        assert now.paid_minor <= total or is_meant
        if now.status in {Status.ISSUED, Status.PAID}:
            covered = now.paid_minor + now.credited_minor >= total
            assert (now.status is Status.PAID) is covered
        else:
            assert now.paid_minor == now.credited_minor == 0


@pytest.mark.parametrize(
    ("day", "why"),
    [
        (date(2026, 1, 31), "before its month, 2026-02"),
        (date(2026, 2, 1), None),
        (date(2026, 3, 11), None),
        (date(2026, 3, 12), "a day to come"),
        (date.max, "a day to come"),
        (date.min, "before its month"),
    ],
)
def test_a_payment_comes_on_a_day_that_was(day: date, why: str | None) -> None:
    """Of the invoice's month or later, and begun somewhere: at 11:00 it is already tomorrow on
    Kiritimati."""
    now = datetime(2026, 3, 10, 11, tzinfo=UTC)
    if why is None:
        check_received(day, "2026-02", now)
        return
    with pytest.raises(WrongDay, match=why):
        check_received(day, "2026-02", now)
