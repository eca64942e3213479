"""How a line of prices stands at an instant."""

from billing.domain.price_book import Price
from billing.domain.price_standing import standing_of


def a_price(number: int, begins_ms: int) -> Price:
    return Price(
        id=number,
        model="m",
        provider="self",
        currency="USD",
        input_pico=1,
        output_pico=1,
        effective_from_ms=begins_ms,
    )


def test_what_began_last_holds_and_what_begins_later_follows_in_order() -> None:
    """Whatever order they come in; one that begins now holds."""
    some = [a_price(number, begins) for number, begins in ((1, 40), (2, 10), (3, 20), (4, 30))]
    standing = standing_of(some, 20)
    assert standing.now is not None
    assert standing.now.id == 3
    assert [each.id for each in standing.later] == [4, 1]
    assert standing.earlier == 1


def test_before_the_first_none_holds() -> None:
    """And none did."""
    standing = standing_of([a_price(1, 10)], 9)
    assert (standing.now, standing.earlier) == (None, 0)
    assert len(standing.later) == 1
