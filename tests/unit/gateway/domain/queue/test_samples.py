"""The record that gateways add up."""

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.queue.samples import Samples

COUNTS = st.integers(0, 10**6)
RECORDS = st.builds(
    Samples,
    epoch=st.integers(1, 3),
    **{field.name: COUNTS for field in fields(Samples) if field.name != "epoch"},
)


@given(RECORDS, RECORDS, RECORDS)
def test_the_order_in_which_gateways_add_does_not_matter(
    a: Samples, b: Samples, c: Samples
) -> None:
    assert a.plus(b).plus(c) == a.plus(b.plus(c))
    assert a.plus(b) == b.plus(a)


def test_counts_of_one_epoch_are_added() -> None:
    got = Samples(2, counted=3, over=1, interactive_ms=50).plus(
        Samples(2, counted=4, stay_ms=9, interactive_ms=40)
    )
    assert got == Samples(2, counted=7, over=1, stay_ms=9, interactive_ms=50)


def test_what_was_seen_before_a_decision_is_dropped_but_when_interactive_was_there() -> None:
    late = Samples(1, counted=100, over=100, interactive_ms=70).plus(Samples(2, counted=1))
    assert late == Samples(2, counted=1, interactive_ms=70)
