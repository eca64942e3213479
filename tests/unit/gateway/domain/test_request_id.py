from uuid import RFC_4122

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.domain.request_id import arrival_ms, request_id, upstream_id

MS = st.integers(0, 2**48 - 1)
RANDOM = st.integers(0, 2**74 - 1)


@given(now_ms=MS, random_bits=RANDOM)
def test_an_id_is_a_uuid_v7_that_carries_its_time(now_ms: int, random_bits: int) -> None:
    """`admitted_at` can be read back from the id, to the millisecond."""
    identifier = request_id(now_ms, random_bits)
    assert (identifier.version, identifier.variant) == (7, RFC_4122)
    assert arrival_ms(identifier) == now_ms


@given(earlier=MS, later=MS, bits=st.tuples(RANDOM, RANDOM))
def test_ids_sort_by_arrival(earlier: int, later: int, bits: tuple[int, int]) -> None:
    """Whatever the random bits, a later millisecond gives a greater id."""
    if earlier != later:
        earlier, later = sorted((earlier, later))
        assert request_id(earlier, bits[0]) < request_id(later, bits[1])


@given(now_ms=MS, bits=st.tuples(RANDOM, RANDOM))
def test_every_random_bit_counts(now_ms: int, bits: tuple[int, int]) -> None:
    """V24: two requests of one millisecond differ whenever their random bits do."""
    ids = {request_id(now_ms, bit) for bit in bits}
    assert len(ids) == len(set(bits))


@given(
    ids=st.tuples(st.tuples(MS, RANDOM), st.tuples(MS, RANDOM)),
    streams=st.tuples(
        st.tuples(st.integers(0, 99), st.integers(0, 99)),
        st.tuples(st.integers(0, 99), st.integers(0, 99)),
    ),
)
def test_no_upstream_id_is_anothers_prefix(
    ids: tuple[tuple[int, int], tuple[int, int]],
    streams: tuple[tuple[int, int], tuple[int, int]],
) -> None:
    """SGLang aborts by prefix: aborting one stream must never stop another."""
    names = {
        upstream_id(request_id(*identifier), *stream)
        for identifier, stream in zip(ids, streams, strict=True)
    }
    assert {len(name) for name in names} == {36}
    if ids[0] != ids[1] or streams[0] != streams[1]:
        assert len(names) == 2
        one, other = names
        assert not one.startswith(other)


@pytest.mark.parametrize(("choice", "attempt"), [(100, 1), (-1, 1), (0, 100), (0, -1)])
def test_what_does_not_fit_two_digits_is_refused(choice: int, attempt: int) -> None:
    """A longer id would break the fixed length."""
    with pytest.raises(ValueError, match="two digits"):
        upstream_id(request_id(1, 1), choice, attempt)
