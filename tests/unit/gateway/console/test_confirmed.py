"""What a page says of gateways that go by a change, or do not, or that nobody knows of."""

import pytest

from gateway.console.confirmed import confirmed_sentence
from gateway.domain.confirmation import Confirmation, Unknown, not_known


def test_all_one_some_or_many_have_not() -> None:
    """Each that has not is named, up to five."""
    assert confirmed_sentence(Confirmation(("a",), ())) == "The gateway goes by it."
    assert confirmed_sentence(Confirmation(("a", "b"), ())) == "All 2 gateways go by it."
    assert "not confirmed yet by b:" in confirmed_sentence(Confirmation(("a",), ("b",))).lower()
    many = tuple(f"g{number}" for number in range(7))
    assert "g0, g1, g2, g3, g4 and 2 more" in confirmed_sentence(Confirmation((), many))


@pytest.mark.parametrize("why", list(Unknown))
def test_not_known_is_never_all(why: Unknown) -> None:
    """And says why."""
    said = confirmed_sentence(not_known(why))
    assert "is not known" in said
    assert "All" not in said
