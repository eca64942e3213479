from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.invoicing.rounding import (
    half_away,
    largest_remainder,
    minor_of,
    pico_per_minor,
    show_minor,
)
from billing.domain.money import CURRENCY_EXPONENTS, UnknownCurrency, show_amount

PICO = 10**12
CURRENCIES = st.sampled_from(sorted(CURRENCY_EXPONENTS))
ANY = st.integers(-(10**30), 10**30)


def test_v17_a_half_is_rounded_away_from_zero_and_compared_rounded() -> None:
    """55 at 0.067 is 3.685, so 3.69; as the nearest even it would be 3.68."""
    exact = 55 * 67 * PICO // 1000
    assert minor_of(exact, "USD") == 369
    assert show_minor(minor_of(exact, "USD"), "USD") == "3.69"
    assert minor_of(-exact, "USD") == -369
    assert minor_of(exact - 1, "USD") == 368


@pytest.mark.parametrize(
    ("units", "currency", "shown"),
    [
        (Fraction("1234.99"), "JPY", "1235"),
        (Fraction("1234.5"), "JPY", "1235"),
        (Fraction("1234.49"), "JPY", "1234"),
        (Fraction("1234.5675"), "KWD", "1234.568"),
        (Fraction("1234.5674"), "KWD", "1234.567"),
        (Fraction("0.005"), "USD", "0.01"),
        (Fraction("0.00499"), "USD", "0.00"),
    ],
)
def test_v20_each_currency_has_its_own_decimals(units: Fraction, currency: str, shown: str) -> None:
    """1,234.99 yen are 1,235, dinars keep three decimals."""
    assert show_minor(minor_of(int(units * PICO), currency), currency) == shown


def test_v20_a_currency_that_nobody_knows_is_refused() -> None:
    """`ZZZ` is never given two decimals."""
    for rule in (minor_of, show_minor):
        with pytest.raises(UnknownCurrency):
            rule(1, "ZZZ")


def test_v22_a_negative_half_is_rounded_away_too() -> None:
    """-77.5 yen are -78: what is shown is what is owed."""
    assert minor_of(-775 * PICO // 10, "JPY") == -78
    assert show_minor(-78, "JPY") == "-78"


@given(ANY, st.integers(1, 10**15))
def test_a_rounded_fraction_is_the_nearest(numerator: int, denominator: int) -> None:
    """Never more than a half away, and on a half farther from zero, of either sign alike."""
    exact = Fraction(numerator, denominator)
    found = half_away(numerator, denominator)
    assert abs(found - exact) <= Fraction(1, 2)
    if abs(found - exact) == Fraction(1, 2):
        assert abs(found) > abs(exact)
    assert half_away(-numerator, denominator) == -found


@given(st.integers(-(10**20), 10**20), CURRENCIES)
def test_a_shown_amount_is_the_exact_one(minor: int, currency: str) -> None:
    """As `show_amount` shows the same money, and a whole minor unit is not rounded again."""
    pico = minor * pico_per_minor(currency)
    assert show_minor(minor, currency) == show_amount(pico, currency)
    assert minor_of(pico, currency) == minor


@pytest.mark.parametrize("denominator", [0, -1])
def test_a_fraction_of_nothing_is_an_error(denominator: int) -> None:
    with pytest.raises(ValueError, match="positive"):
        half_away(1, denominator)


def test_a_total_is_split_by_largest_remainder() -> None:
    """100 by 1:1:1 is 34, 33, 33; of equal remainders the first has more. 10 by 1:2:4 has the
    exact shares 1.43, 2.86 and 5.71: 1, 3 and 6."""
    assert largest_remainder(100, [1, 1, 1]) == (34, 33, 33)
    assert largest_remainder(10, [1, 2, 4]) == (1, 3, 6)
    assert largest_remainder(0, [0, 0]) == (0, 0)
    assert largest_remainder(7, [0, 5, 0]) == (0, 7, 0)


@given(st.integers(0, 10**20), st.lists(st.integers(0, 10**12), min_size=1, max_size=30))
def test_split_parts_sum_to_the_total(total: int, weights: list[int]) -> None:
    """Exactly, each less than one from its share, and nothing goes to what weighs nothing."""
    if not any(weights):
        weights[0] = 1
    parts = largest_remainder(total, weights)
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - Fraction(total * weight, sum(weights))) < 1
        assert weight or not part


@pytest.mark.parametrize(("total", "weights"), [(-1, [1]), (1, [-1, 2]), (1, []), (1, [0])])
def test_what_cannot_be_split(total: int, weights: list[int]) -> None:
    with pytest.raises(ValueError, match=r"negative|weight"):
        largest_remainder(total, weights)
