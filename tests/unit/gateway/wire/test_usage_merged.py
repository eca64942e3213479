"""Usage is cumulative, and each count of it by itself."""

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.wire.upstream import read_event
from gateway.wire.usage import Usage

COUNT = st.none() | st.integers(0, 40)
USAGE = st.builds(Usage, COUNT, COUNT, COUNT, COUNT)
NAMES = ("prompt_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
GROWING = ("prompt_tokens", "output_tokens", "reasoning_tokens")


@given(said=st.lists(USAGE, min_size=1, max_size=6))
def test_each_count_is_the_last_that_was_said(said: list[Usage]) -> None:
    """DESIGN 7: the last cumulative usage wins, count by count; what was said once is known, 0
    included; a fall is marked wherever it was, and only then."""
    known = said[0]
    for later in said[1:]:
        known = known.merged(later)
    fell = False
    for name in NAMES:
        values = [value for usage in said if (value := getattr(usage, name)) is not None]
        assert getattr(known, name) == (values[-1] if values else None)
        fell |= name in GROWING and values != sorted(values)
    assert known.fell is fell


def test_cached_may_fall() -> None:
    """A sequence that was thrown out finds another part of its prompt when it comes back."""
    assert not Usage(9, 1, 8).merged(Usage(9, 2, 4)).fell


@pytest.mark.parametrize(
    ("earlier", "later", "marked"),
    [
        (Usage(None, 3, out_of_range=True), Usage(5, 4), False),
        (Usage(None, 3, out_of_range=True), Usage(None, 4), True),
        (Usage(None, 3, out_of_range=True), Usage(5), True),
        (Usage(5, 3), Usage(None, 4, out_of_range=True), True),
    ],
)
def test_a_mark_stays_as_long_as_its_account_counts(
    earlier: Usage, later: Usage, marked: bool
) -> None:
    """S10: nonsense that a whole account replaced is nobody's concern any more."""
    assert earlier.merged(later).out_of_range is marked


@pytest.mark.parametrize("empty", [{}, {"prompt_tokens": None}, {"prompt_tokens": 37}])
def test_an_account_that_leaves_counts_out_hides_no_other(empty: dict[str, object]) -> None:
    """Beside each other in one chunk: at the root, at the choice, at Groq's place."""
    whole = {"prompt_tokens": 37, "completion_tokens": 8}
    for places in (
        {"usage": empty, "choices": [{"index": 0, "usage": whole}]},
        {"usage": empty, "choices": [], "x_groq": {"usage": whole}},
        {"choices": [{"index": 0, "usage": empty}], "x_groq": {"usage": whole}},
    ):
        assert read_event(json.dumps(places).encode()).usage == Usage(37, 8)


def test_of_two_whole_accounts_the_root_holds() -> None:
    """They are of one moment: a difference is no fall."""
    data = {
        "usage": {"prompt_tokens": 37, "completion_tokens": 8},
        "choices": [{"index": 0, "usage": {"prompt_tokens": 40, "completion_tokens": 9}}],
    }
    assert read_event(json.dumps(data).encode()).usage == Usage(37, 8)
