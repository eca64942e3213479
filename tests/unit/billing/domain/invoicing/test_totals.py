import pytest
from hypothesis import given
from hypothesis import strategies as st
from invoice_examples import VAT, a_line

from billing.domain.invoicing.tax import Tax
from billing.domain.invoicing.totals import NegativeTotal, totals_of

REVERSE = Tax(name="VAT", note="Reverse charge: the recipient owes the tax.")


def test_v14_tax_is_rounded_once_on_the_sum() -> None:
    """68.33, 68.33, 57.50 and 85.00 at 20 %: 279.16 and 55.832, so 334.99; rounding each line's
    tax would make 335.00."""
    lines = [a_line(i, minor) for i, minor in enumerate((6833, 6833, 5750, 8500), 1)]
    totals = totals_of(lines, [VAT])
    assert totals.subtotal_minor == 27_916
    assert [(tax.base_minor, tax.tax_minor) for tax in totals.taxes] == [(27_916, 5_583)]
    assert totals.total_minor == 33_499


def test_each_rate_is_taxed_on_its_own_subtotal() -> None:
    """19 % of 0.97 is 0.1843 and 7 % of 0.50 is 0.035, a half: 0.18 and 0.04."""
    full, less = Tax(rate_milli_percent=19_000, name="A"), Tax(rate_milli_percent=7_000, name="B")
    lines = [a_line(1, 40, full), a_line(2, 50, less), a_line(3, 57, full)]
    totals = totals_of(lines, [full, less])
    assert [(tax.name, tax.base_minor, tax.tax_minor) for tax in totals.taxes] == [
        ("A", 97, 18),
        ("B", 50, 4),
    ]
    assert totals.total_minor == 97 + 50 + 18 + 4


def test_an_untaxed_invoice_says_why() -> None:
    """Also one without a line."""
    for lines in ([a_line(1, 500, REVERSE)], []):
        totals = totals_of(lines, [REVERSE])
        assert totals.total_minor == totals.subtotal_minor == sum(x.amount_minor for x in lines)
        assert [(tax.tax_minor, tax.note) for tax in totals.taxes] == [(0, REVERSE.note)]


def test_v48_a_negative_line_may_be_and_a_negative_total_never() -> None:
    """What is owed to a customer is a credit note: an invoice over it is refused, by a cent too."""
    lines = [a_line(1, 500, REVERSE), a_line(2, -500, REVERSE)]
    assert totals_of(lines, [REVERSE]).total_minor == 0
    with pytest.raises(NegativeTotal, match="-1"):
        totals_of([*lines, a_line(3, -1, REVERSE)], [REVERSE])


def test_a_line_at_a_rate_that_nobody_named_is_an_error() -> None:
    with pytest.raises(ValueError, match="no tax has the rate 20000"):
        totals_of([a_line(1, 1)], [REVERSE])
    with pytest.raises(ValueError, match="the same rate"):
        totals_of([], [VAT, VAT])


@given(st.lists(st.integers(0, 10**15), max_size=20), st.integers(0, 100_000))
def test_inv_7_what_is_shown_adds_up(amounts: list[int], rate: int) -> None:
    """Lines to the subtotal, subtotal and tax to the total."""
    tax = Tax(rate_milli_percent=rate, name="T")
    totals = totals_of([a_line(i, each, tax) for i, each in enumerate(amounts, 1)], [tax])
    assert totals.subtotal_minor == sum(amounts)
    assert totals.total_minor == totals.subtotal_minor + sum(x.tax_minor for x in totals.taxes)
    assert abs(totals.taxes[0].tax_minor * 100_000 - totals.subtotal_minor * rate) * 2 <= 100_000
