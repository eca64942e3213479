"""How much of a gateway's memory bodies may take before their requests are admitted."""

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.body_room import SMALL_BYTES, TIMES_LARGEST_MIN, BodyRoom, HeldBody
from gateway.errors import Overloaded

MIB = 1024 * 1024
ALL = 256 * MIB
LARGE = ALL - ALL // 8


def filled(room: BodyRoom, tenant: str, piece: int = MIB) -> int:
    """What a tenant holds that takes all it can get in one body; the body never ends."""
    body = room.body_of(tenant)

    def grow_on() -> None:
        while True:
            body.grow(piece)

    with pytest.raises(Overloaded) as refused:
        grow_on()
    assert (refused.value.status, refused.value.code) == (503, "no_capacity")
    assert refused.value.retry_after_ms
    return room.of_tenant(tenant)


def test_one_tenant_has_half_and_many_have_equal_parts_of_what_large_bodies_may_take() -> None:
    """Whoever comes finds as much free as each of the others had left."""
    room = BodyRoom(ALL)
    assert filled(room, "first") == LARGE // 2
    assert filled(room, "second") == LARGE // 4
    assert filled(room, "third") == LARGE // 8


def test_small_bodies_of_others_find_room_however_many_send_large_ones() -> None:
    """As many as the last eighth holds. One that grows out of it is large."""
    room = BodyRoom(ALL)
    for number in range(1000):
        filled(room, f"greedy {number}", 70_000)
    assert room.held_bytes > LARGE - MIB
    for number in range(400):
        room.body_of(f"small {number}").grow(SMALL_BYTES)
    grown = room.body_of("grown")
    grown.grow(SMALL_BYTES)
    with pytest.raises(Overloaded):
        grown.grow(1)


def test_a_tenant_alone_can_send_the_largest_body_in_the_least_room() -> None:
    """Else no retry would ever help."""
    BodyRoom(8 * MIB * TIMES_LARGEST_MIN).body_of("t").grow(8 * MIB)


def test_what_is_refused_is_not_counted_and_what_came_before_is_until_the_end() -> None:
    """Nor does the end of a body refuse it once others have come."""
    room = BodyRoom(1000)
    with room.body_of("t") as body:
        body.grow(400)
        with pytest.raises(Overloaded):
            body.grow(200)
        assert (room.held_bytes, room.of_tenant("t")) == (400, 400)
        room.body_of("u").grow(300)
        body.grow(0)
    assert (room.held_bytes, room.of_tenant("t"), room.of_tenant("u")) == (300, 0, 300)


@given(
    bytes_max=st.integers(1, 5_000_000),
    steps=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.integers(0, 1_000_000))
        | st.integers(0, 5),
        max_size=60,
    ),
)
def test_the_sum_is_never_over_and_nothing_is_left(
    bytes_max: int, steps: list[tuple[int, str, int] | int]
) -> None:
    """Of any bodies that grow and end in any order, refused or not: what is held is what was taken,
    no more than all room, and a tenant that got more left as much free."""
    room = BodyRoom(bytes_max)
    bodies: dict[int, tuple[str, HeldBody]] = {}
    taken: dict[int, int] = {}
    with ExitStack() as ends:
        for step in steps:
            if isinstance(step, int):
                if step in bodies:
                    bodies.pop(step)[1].__exit__()
                    taken.pop(step)
                continue
            number, tenant, size = step
            if number not in bodies:
                bodies[number] = (tenant, ends.enter_context(room.body_of(tenant)))
                taken[number] = 0
            tenant, body = bodies[number]
            try:
                body.grow(size)
            except Overloaded:
                pass
            else:
                taken[number] += size
                assert not size or room.of_tenant(tenant) <= bytes_max - room.held_bytes
            assert room.held_bytes == sum(taken.values()) <= bytes_max
            for each in "abc":
                of_it = sum(taken[n] for n, (whose, _) in bodies.items() if whose == each)
                assert room.of_tenant(each) == of_it
    assert room.held_bytes == 0
    assert room._of_tenants == {}
