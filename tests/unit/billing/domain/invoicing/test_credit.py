from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invoice_examples import VAT, a_line

from billing.domain.invoicing.credit import (
    CreditExceeds,
    CreditLine,
    CreditNote,
    RefusedCredit,
    credit,
    left_to_credit,
)
from billing.domain.invoicing.lines import Line
from billing.domain.invoicing.tax import Tax, tax_minor
from billing.domain.invoicing.totals import Totals, totals_of

LINES = [a_line(i, minor) for i, minor in enumerate((6833, 6833, 5750, 8500), 1)]
TOTALS = totals_of(LINES, [VAT])


def cite(position: int, amount_minor: int) -> CreditLine:
    return CreditLine(position=position, amount_minor=amount_minor)


def noted(earlier: Sequence[CreditNote], *wanted: CreditLine) -> CreditNote:
    return credit(LINES, TOTALS, earlier, wanted, "a mistake")


def test_v14_four_notes_for_four_lines_are_the_invoice_and_no_cent_more() -> None:
    """334.99 at 20 %. Tax of all that is credited so far is 13.666, 27.332, 38.832 and 55.832, so
    13.67, 27.33, 38.83 and 55.83: the notes have 13.67, 13.66, 11.50 and 17.00."""
    notes: list[CreditNote] = []
    for line in LINES:
        notes.append(noted(notes, cite(line.position, line.amount_minor)))
    assert [sum(tax.tax_minor for tax in note.taxes) for note in notes] == [1367, 1366, 1150, 1700]
    assert [note.total_minor for note in notes] == [8200, 8199, 6900, 10200]
    assert sum(note.total_minor for note in notes) == TOTALS.total_minor == 33_499
    assert left_to_credit(LINES, notes) == ()


def test_v18_a_full_credit_takes_exactly_the_rounded_line() -> None:
    """2.25 at 64.22 is 144.495, on the invoice 144.50: what is left after a full credit is 0.00
    and not -0.01."""
    lines = [a_line(1, 14_450, amount_pico=144_495 * 10**9)]
    totals = totals_of(lines, [VAT])
    whole = credit(lines, totals, [], left_to_credit(lines, []), "all of it")
    assert totals.subtotal_minor - whole.subtotal_minor == 0
    assert totals.total_minor - whole.total_minor == 0
    assert left_to_credit(lines, [whole]) == ()


def test_v16_a_note_never_exceeds_what_is_left_of_a_line() -> None:
    """By a cent: at once, after an earlier note, and although other lines have more."""
    with pytest.raises(CreditExceeds, match="line 3 has 5750 minor units left to credit, not 5751"):
        noted([], cite(3, 5751))
    first = noted([], cite(3, 5000))
    with pytest.raises(CreditExceeds) as refused:
        noted([first], cite(3, 751), cite(1, 1))
    assert (refused.value.position, refused.value.left_minor) == (3, 750)
    assert noted([first], cite(3, 750)).subtotal_minor == 750


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ([], "at least one"),
        ([cite(5, 1)], "no line 5"),
        ([cite(1, 0)], "more than nothing"),
        ([cite(1, -1)], "more than nothing"),
        ([cite(1, 1), cite(1, 1)], "cites a line once"),
    ],
)
def test_what_is_no_credit_note(wanted: list[CreditLine], why: str) -> None:
    with pytest.raises(RefusedCredit, match=why):
        noted([], *wanted)


def test_a_note_names_its_lines_in_order_and_its_reason() -> None:
    note = noted([], cite(4, 10), cite(2, 20))
    assert [line.position for line in note.lines] == [2, 4]
    assert (note.subtotal_minor, note.total_minor, note.reason) == (30, 36, "a mistake")


def test_v48_what_is_more_than_an_invoice_can_bear_is_a_note_against_an_earlier_one() -> None:
    """50.00 too much was billed in October and November is 20.00: no negative line brings November
    below nothing, a note against October gives all of it back."""
    october, november = [a_line(1, 5_000)], [a_line(1, 2_000)]
    with pytest.raises(CreditExceeds):
        credit(november, totals_of(november, [VAT]), [], [cite(1, 5_000)], "October")
    note = credit(october, totals_of(october, [VAT]), [], [cite(1, 5_000)], "billed twice")
    assert note.total_minor == 6_000


RATES = st.sampled_from([0, 7_000, 19_000, 20_000, 8_875, 5_500])


@st.composite
def an_invoice(draw: st.DrawFn) -> tuple[list[Line], Totals]:
    """Lines at up to three rates, and their totals."""
    rates = draw(st.lists(RATES, min_size=1, max_size=3, unique=True))
    taxes = [Tax(rate_milli_percent=rate, name=str(rate)) for rate in rates]
    amounts = draw(st.lists(st.integers(0, 400), min_size=1, max_size=6))
    lines = [
        a_line(position, amount, draw(st.sampled_from(taxes)))
        for position, amount in enumerate(amounts, 1)
    ]
    return lines, totals_of(lines, taxes)


@given(an_invoice(), st.data())
def test_inv_7_notes_together_are_at_most_the_invoice_and_in_full_exactly(
    invoice: tuple[list[Line], Totals], data: st.DataObject
) -> None:
    """However it is cut: each note's tax is within a minor unit of its own share, none is negative,
    and when all is credited each rate's tax is the invoice's."""
    lines, totals = invoice
    notes: list[CreditNote] = []
    while left := left_to_credit(lines, notes):
        wanted = data.draw(st.lists(st.sampled_from(left), min_size=1, unique=True))
        cut = [cite(x.position, data.draw(st.integers(1, x.amount_minor))) for x in wanted]
        if len(notes) > 3:
            cut = list(left)
        notes.append(credit(lines, totals, notes, cut, "r"))
        for tax in notes[-1].taxes:
            assert tax.tax_minor >= 0
            assert abs(tax.tax_minor - tax_minor(tax.base_minor, tax.rate_milli_percent)) <= 1
        assert sum(note.total_minor for note in notes) <= totals.total_minor
    for tax in totals.taxes:
        given_back = [x for note in notes for x in note.taxes if x.name == tax.name]
        assert sum(x.tax_minor for x in given_back) == tax.tax_minor
        assert sum(x.base_minor for x in given_back) == tax.base_minor
    assert sum(note.total_minor for note in notes) == totals.total_minor
