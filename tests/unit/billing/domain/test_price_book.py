import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from billing.domain.price_book import Price, PriceBook

PRICE = Price(
    id=1,
    model="qwen2.5-7b",
    provider="self",
    currency="USD",
    input_pico=400_000,
    output_pico=1_200_000,
    effective_from_ms=1_000,
)


def begins(at_ms: int, **changes: object) -> Price:
    """PRICE, from that instant on, numbered by it."""
    return replace(PRICE, id=at_ms, effective_from_ms=at_ms, **changes)


@pytest.mark.parametrize(
    ("at_ms", "found"),
    [(999, None), (1_000, 1_000), (1_999, 1_000), (2_000, 2_000), (9_999, 2_000)],
)
def test_a_price_holds_from_its_instant_until_the_next(at_ms: int, found: int | None) -> None:
    """V46, V10: use before the change at the old price, at the instant itself at the new."""
    book = PriceBook([begins(2_000), begins(1_000)])
    price = book.price_at("qwen2.5-7b", "self", "USD", at_ms)
    assert (price and price.id) == found


@pytest.mark.parametrize(
    "asked",
    [
        ("qwen2.5-7b-instruct", "self", "USD"),
        ("qwen2.5", "self", "USD"),
        ("QWEN2.5-7B", "self", "USD"),
        ("qwen2.5-7b", "hosted:simulated", "USD"),
        ("qwen2.5-7b", "self", "EUR"),
    ],
)
def test_no_other_price_stands_in(asked: tuple[str, str, str]) -> None:
    """V47: an unknown model is unpriced, never priced as one whose name begins alike."""
    assert PriceBook([begins(1_000)]).price_at(*asked, 5_000) is None


def test_an_empty_book_has_no_price() -> None:
    assert PriceBook().price_at("qwen2.5-7b", "self", "USD", 5_000) is None


def test_two_prices_from_one_instant_are_refused() -> None:
    """Which of them holds would be chance. Other providers and currencies do not clash."""
    with pytest.raises(ValueError, match="same instant"):
        PriceBook([begins(1_000), begins(1_000, input_pico=1)])
    PriceBook(
        [
            begins(1_000),
            begins(1_000, provider="hosted:other"),
            begins(1_000, currency="JPY"),
            begins(1_000, model="other"),
        ]
    )


@given(st.sets(st.integers(0, 10_000)), st.integers(-1, 10_001), st.randoms())
def test_the_latest_begun_price_holds(begun: set[int], at_ms: int, order: object) -> None:
    """Whatever order the prices are read in; and what begins later changes nothing before it."""
    prices = [begins(each) for each in sorted(begun)]
    order.shuffle(prices)  # type: ignore[attr-defined]
    expected = max((each for each in begun if each <= at_ms), default=None)
    price = PriceBook(prices).price_at("qwen2.5-7b", "self", "USD", at_ms)
    assert (None if price is None else price.effective_from_ms) == expected
    later = begins(at_ms + 20_000)
    assert PriceBook([*prices, later]).price_at("qwen2.5-7b", "self", "USD", at_ms) == price
