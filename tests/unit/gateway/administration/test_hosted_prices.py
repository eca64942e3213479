"""Prices are read and shown exactly, or refused."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.administration.hosted_prices import parse_price, show_price
from gateway.domain.hosted import PRICE_PICO_MAX
from gateway.errors import Unprocessable


@given(st.integers(min_value=0, max_value=PRICE_PICO_MAX))
def test_what_is_shown_reads_back(pico: int) -> None:
    """Exactly, whatever the price; and it says the same number as decimal arithmetic does."""
    text = show_price(pico)
    assert parse_price(text, field="x") == pico
    assert Decimal(text) == Decimal(pico) / 10**6


@given(st.decimals(min_value=0, max_value=2147, places=6, allow_nan=False))
def test_every_decimal_of_six_places_is_taken(price: Decimal) -> None:
    """To the last digit: a float would lose some of them."""
    assert parse_price(f"{price:f}", field="x") == int(price * 10**6)


@pytest.mark.parametrize(
    ("text", "pico", "shown"),
    [
        ("0", 0, "0.00"),
        ("0.4", 400_000, "0.40"),
        ("0.40", 400_000, "0.40"),
        ("1.600000", 1_600_000, "1.60"),
        ("0.075", 75_000, "0.075"),
        ("15", 15_000_000, "15.00"),
        ("0.000001", 1, "0.000001"),
        ("2147.483647", 2**31 - 1, "2147.483647"),
    ],
)
def test_one_price_has_one_form(text: str, pico: int, shown: str) -> None:
    """Two to six decimals."""
    assert parse_price(text, field="x") == pico
    assert show_price(pico) == shown


BAD = ["", " ", "-1", "+1", "1e3", "1E-3", "NaN", "Infinity", ".5", "5.", "1.0000001", "1_000"]
BAD += ["1,5", "0x1", "00.4", " 1", "1\n", "١", "$1", "99999999999"]


@pytest.mark.parametrize("price", [*BAD, 0.4, 1, True, None])
def test_anything_else_is_refused(price: object) -> None:
    """A number that is no text is refused too: it may have been a float on its way here."""
    with pytest.raises(Unprocessable) as refused:
        parse_price(price, field="models.m.price.input")
    assert refused.value.param == "models.m.price.input"


def test_another_currency_has_its_own_bound() -> None:
    """A price in dong is a large number; what is refused is said in its currency."""
    assert parse_price("400000.00", field="input", currency="VND", pico_max=10**12) == 4 * 10**11
    with pytest.raises(Unprocessable, match=r"at most 1000000\.00 VND"):
        parse_price("1000000.000001", field="input", currency="VND", pico_max=10**12)
    with pytest.raises(Unprocessable, match="VND per million"):
        parse_price("free", field="input", currency="VND", pico_max=10**12)


@pytest.mark.parametrize("price", ["2147.483648", "3000", "9007199254.740992"])
def test_a_price_whose_cost_could_not_be_kept_is_refused(price: str) -> None:
    """It says how much may be; a cost that overflows would lose a request that was served."""
    with pytest.raises(Unprocessable, match=r"at most 2147\.483647 USD") as refused:
        parse_price(price, field="models.m.price.input")
    assert refused.value.param == "models.m.price.input"
