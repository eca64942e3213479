import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.invoicing.tax import InvalidTaxRate, parse_tax_rate, show_tax_rate, tax_minor


@pytest.mark.parametrize(
    ("text", "rate"),
    [("19", 19_000), ("0", 0), ("8.875", 8_875), ("5.50", 5_500), ("0.001", 1), ("100", 100_000)],
)
def test_a_rate_is_a_text_of_per_cent(text: str, rate: int) -> None:
    assert parse_tax_rate(text) == rate


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "+1",
        "19%",
        "100.001",
        "101",
        "1.2345",
        "019",
        ".5",
        "5.",
        "1e1",
        " 19",
        "１９",
        19,
        19.5,
        None,
    ],
)
def test_what_is_no_rate(text: object) -> None:
    """Numbers that are no texts too: they may have been floats."""
    with pytest.raises(InvalidTaxRate, match="per cent"):
        parse_tax_rate(text)


@given(st.integers(0, 100_000))
def test_a_shown_rate_is_read_again(rate: int) -> None:
    assert parse_tax_rate(show_tax_rate(rate)) == rate


def test_a_rate_is_shown_without_needless_zeros() -> None:
    assert [show_tax_rate(rate) for rate in (19_000, 5_500, 8_875, 0)] == [
        "19",
        "5.5",
        "8.875",
        "0",
    ]


def test_tax_is_rounded_a_half_away_from_zero() -> None:
    """5 % of 0.10 is half a cent: one; 8.875 % of 100.00 is 8.875: 8.88."""
    assert tax_minor(10, 5_000) == 1
    assert tax_minor(-10, 5_000) == -1
    assert tax_minor(9, 5_000) == 0
    assert tax_minor(10_000, 8_875) == 888
