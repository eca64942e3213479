"""Who has confirmed a change: nobody is claimed to that has not said so."""

from gateway.domain.confirmation import Applied, Unknown, confirmation, not_known


def test_a_gateway_has_confirmed_what_it_has_seen() -> None:
    """Up to its number, and single revocations beyond it."""
    applied = Applied(7, frozenset({9}))
    assert [changed for changed in range(5, 12) if applied.has(changed)] == [5, 6, 7, 9]


def test_all_that_are_there_are_one_or_the_other() -> None:
    """Who has said nothing has not confirmed; who is not there is in neither list."""
    said = {"a": Applied(7), "b": Applied(6), "gone": Applied(9)}
    found = confirmation(("a", "b", "c"), said, 7)
    assert (found.confirmed, found.unconfirmed, found.unknown) == (("a",), ("b", "c"), None)
    assert not found.is_complete
    assert confirmation(("a",), said, 7).is_complete


def test_what_is_not_known_is_no_confirmation() -> None:
    """Also where the first change of all is asked for, number 0, nobody counts who is silent."""
    found = not_known(Unknown.NO_STORE)
    assert (found.confirmed, found.unconfirmed, found.is_complete) == ((), None, False)
    assert confirmation(("a",), {}, 0).unconfirmed == ("a",)
