import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.money import (
    CURRENCY_EXPONENTS,
    InvalidAmount,
    UnknownCurrency,
    currency_exponent,
    parse_amount,
    show_amount,
)

CURRENCIES = st.sampled_from(sorted(CURRENCY_EXPONENTS))


@pytest.mark.parametrize(
    ("text", "currency", "pico"),
    [
        ("500.00", "USD", 500 * 10**12),
        ("500", "USD", 500 * 10**12),
        ("0.5", "USD", 5 * 10**11),
        ("0.01", "USD", 10**10),
        ("0", "USD", 0),
        ("0.00", "USD", 0),
        ("1235", "JPY", 1235 * 10**12),
        ("1.234", "KWD", 1_234 * 10**9),
        ("999999999999.999", "KWD", 999_999_999_999_999 * 10**9),
    ],
)
def test_an_amount_is_read_exactly(text: str, currency: str, pico: int) -> None:
    """V20: a yen has no decimals, a dinar three."""
    assert parse_amount(text, currency) == pico


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("1234.99", "JPY"),
        ("1234.0", "JPY"),
        ("1.", "JPY"),
        ("0.001", "USD"),
        ("1.2345", "KWD"),
        ("-1", "USD"),
        ("+1", "USD"),
        ("1e3", "USD"),
        ("NaN", "USD"),
        ("Infinity", "USD"),
        ("1,000", "USD"),
        ("1_000", "USD"),
        (" 1", "USD"),
        ("1\n", "USD"),
        ("", "USD"),
        (".5", "USD"),
        ("05", "USD"),
        ("٣", "USD"),
        ("1000000000000", "USD"),
        (1, "USD"),
        (1.5, "USD"),
        (True, "USD"),
        (None, "USD"),
        (b"1", "USD"),
    ],
)
def test_what_is_no_amount_is_refused_never_rounded(text: object, currency: str) -> None:
    """V20: what a currency cannot say is refused where a person writes it."""
    with pytest.raises(InvalidAmount, match=currency):
        parse_amount(text, currency)


@pytest.mark.parametrize("currency", ["ZZZ", "usd", "US", "USD ", ""])
def test_an_unknown_currency_is_refused(currency: str) -> None:
    """V20: `ZZZ` must be refused, not given two decimals."""
    for ask in (
        lambda: currency_exponent(currency),
        lambda: parse_amount("1", currency),
        lambda: show_amount(10**12, currency),
    ):
        with pytest.raises(UnknownCurrency):
            ask()


@pytest.mark.parametrize(
    ("pico", "currency", "text"),
    [
        (500 * 10**12, "USD", "500.00"),
        (0, "USD", "0.00"),
        (0, "JPY", "0"),
        (0, "KWD", "0.000"),
        (1, "USD", "0.000000000001"),
        (5 * 10**8, "JPY", "0.0005"),
        (-77_500 * 10**9, "USD", "-77.50"),
        (-1, "JPY", "-0.000000000001"),
    ],
)
def test_an_amount_is_shown_exactly(pico: int, currency: str, text: str) -> None:
    """The currency's own decimals, and as many more as the amount has."""
    assert show_amount(pico, currency) == text


@given(CURRENCIES, st.integers(0, 10**12 - 1), st.integers(0, 999))
def test_what_is_shown_reads_back(currency: str, whole: int, minor: int) -> None:
    """Any amount of whole minor units survives text, to the last one."""
    exponent = currency_exponent(currency)
    pico = whole * 10**12 + minor % 10**exponent * 10 ** (12 - exponent)
    assert parse_amount(show_amount(pico, currency), currency) == pico


@given(CURRENCIES, st.integers(-(10**26), 10**26))
def test_showing_loses_nothing(currency: str, pico: int) -> None:
    """Two different amounts never look the same."""
    text = show_amount(pico, currency)
    whole, _, decimals = text.lstrip("-").partition(".")
    assert int(whole + decimals.ljust(12, "0")) == abs(pico)
    assert text.startswith("-") == (pico < 0)
    assert len(decimals) >= currency_exponent(currency)
