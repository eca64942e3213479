"""When an engine's counters have begun again."""

import pytest

from billing.domain.engine_counters import EngineCounters, begins_again

BEFORE = EngineCounters(
    "a", running=3, prompt_tokens=10, output_tokens=5, cached_tokens=2, requests=1, aborted=0
)


@pytest.mark.parametrize("field", ["prompt_tokens", "output_tokens", "cached_tokens", "requests"])
@pytest.mark.parametrize("now", [None, 0])
def test_a_count_that_fell_or_is_gone(field: str, now: int | None) -> None:
    """Each of them alone tells it, whatever the others say."""
    assert begins_again(BEFORE, EngineCounters(**{**BEFORE._asdict(), field: now}))
    assert not begins_again(BEFORE, EngineCounters(**{**BEFORE._asdict(), field: 1000}))


def test_another_mark_tells_it_though_all_has_grown() -> None:
    """A process that soon counted more than the one before it."""
    later = EngineCounters("b", 0, 100, 50, 20, 10, 5)
    assert begins_again(BEFORE, later)
    assert not begins_again(BEFORE, later._replace(mark="a"))


def test_what_is_not_known_tells_nothing() -> None:
    """No mark on either side; a count that was not told before; how many run now."""
    assert not begins_again(BEFORE, BEFORE._replace(mark=None))
    assert not begins_again(BEFORE._replace(mark=None), BEFORE)
    assert not begins_again(EngineCounters(), BEFORE)
    assert not begins_again(BEFORE, BEFORE._replace(running=0, health=4))
