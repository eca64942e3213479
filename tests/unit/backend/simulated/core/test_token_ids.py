"""How far two texts agree."""

import pytest
from simulated_core import ids, text

from backend.simulated.token_ids import shared_tokens


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 48, 49, 1000])
def test_the_first_difference_is_found_wherever_it_is(length: int) -> None:
    """Also at the edges of the windows that are compared at once."""
    whole = list(range(length))
    for differs in range(length):
        other = [*whole[:differs], 77_777, *whole[differs + 1 :]]
        at = len(ids(5, 6))
        found = shared_tokens(ids(*whole), ids(5, 6, *other), at, at + length * 4)
        assert found == differs


def test_no_byte_beyond_the_end_is_looked_at() -> None:
    """A stored text longer than what is asked about agrees up to the end of that."""
    assert shared_tokens(text(10), text(10), 0, 7 * 4) == 7
    assert shared_tokens(text(10), text(7), 0, 7 * 4) == 7
    assert shared_tokens(text(7), text(10), 0, 10 * 4) == 7


def test_tokens_that_share_bytes_are_different_tokens() -> None:
    """256 and 512 agree in three of four bytes."""
    assert shared_tokens(ids(1, 256), ids(1, 512), 0, 8) == 1
