import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from gateway.domain.engine_facts import EngineFacts, Need, PriorityOrder, engine_priority
from gateway.domain.tenant import RequestClass

MEASURED = EngineFacts(
    version="0.5.23", context_tokens=2048, pool_tokens=1000, input_bound_tokens=994, page_tokens=1
)
"""A real SGLang with a pool of 1,000 tokens: prompts of 4 and 9 that asked for 1,500 got 994 and
989; one of 1,616 was refused with `maximum allowed length (994 tokens)`."""


@pytest.mark.parametrize(
    ("prompt", "room"), [(4, 994), (9, 989), (0, 998), (993, 5), (994, 0), (1616, 0), (4000, 0)]
)
def test_the_room_is_what_the_real_engine_gave(prompt: int, room: int) -> None:
    """`min(C, K) - 2` for prompt and output, and a prompt below `max_req_input_len`."""
    assert MEASURED.output_room(prompt) == room


def test_what_is_held_is_neither_refused_nor_cut_down() -> None:
    """To the token."""
    assert MEASURED.holds(Need(4, 994))
    assert not MEASURED.holds(Need(4, 995))
    assert not MEASURED.holds(Need(994, 1))
    assert MEASURED.longest_prompt == 993


def test_the_context_bounds_as_the_pool_does() -> None:
    """The captured server: a context of 2,048 in a pool of 8,192."""
    facts = EngineFacts(context_tokens=2048, pool_tokens=8192, input_bound_tokens=2042)
    assert (facts.output_room(46), facts.longest_prompt) == (2000, 2041)


def test_pages_take_their_part() -> None:
    """K - pages(n)·p - p - 1: a prompt of 65 holds two pages of 64, and one is set aside."""
    facts = EngineFacts(pool_tokens=1024, page_tokens=64)
    assert facts.output_room(65) == 1024 - 128 - 64 - 1


def test_an_engine_that_says_nothing_holds_everything() -> None:
    """What is not known refuses nobody."""
    assert EngineFacts().holds(Need(2**31, 2**31))


@given(
    context=st.integers(10, 4000),
    pool=st.integers(10, 4000),
    page=st.integers(1, 64),
    prompt=st.integers(0, 4000),
    known=st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
)
@example(context=10, pool=10, page=4, prompt=5, known=(False, True, False, True))
def test_what_is_known_only_narrows(
    context: int, pool: int, page: int, prompt: int, known: tuple[bool, ...]
) -> None:
    """A missing value never makes the room smaller than the whole truth does, and what the engine
    would run, prompt and output together, always fits context and pool."""
    values = (context, pool, min(context, pool) - 6, page)
    whole = EngineFacts(None, None, None, None, *values)
    told = [value if kept else None for value, kept in zip(values, known, strict=True)]
    part = EngineFacts(
        context_tokens=told[0],
        pool_tokens=told[1],
        input_bound_tokens=told[2],
        page_tokens=told[3],
    )
    room = whole.output_room(prompt)
    assert part.output_room(prompt) >= room
    if room >= 1:
        assert prompt + room <= min(context, pool) - 2


@pytest.mark.parametrize(
    ("scheduling", "lowest_first", "order", "interactive", "batch"),
    [
        (True, False, PriorityOrder.HIGHEST_FIRST, 1, 0),
        (True, None, PriorityOrder.HIGHEST_FIRST, 1, 0),
        (True, True, PriorityOrder.LOWEST_FIRST, 0, 1),
        (False, False, None, None, None),
        (False, True, None, None, None),
        (None, None, None, None, None),
    ],
)
def test_interactive_comes_before_batch(
    scheduling: bool | None,
    lowest_first: bool | None,
    order: PriorityOrder | None,
    interactive: int | None,
    batch: int | None,
) -> None:
    """Q03: the engine's own direction decides; without priorities none is sent."""
    facts = EngineFacts(priority_scheduling=scheduling, lowest_priority_first=lowest_first)
    assert facts.priority_order is order
    assert engine_priority(RequestClass.INTERACTIVE, facts) == interactive
    assert engine_priority(RequestClass.BATCH, facts) == batch


def test_a_batch_request_that_runs_is_not_evicted() -> None:
    """SGLang preempts from a gap of 10 on."""
    for lowest_first in (True, False):
        facts = EngineFacts(priority_scheduling=True, lowest_priority_first=lowest_first)
        values = [engine_priority(each, facts) for each in RequestClass]
        known = [value for value in values if value is not None]
        assert max(known) - min(known) < 10
