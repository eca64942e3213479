"""A run's script: the same of the same seed, with all that a run is to have in it."""

from collections import Counter

import pytest
from metering_run.script import FULL, SHORT, Blow, Script, Size, plan


def apart(script: Script, kinds: tuple[str, ...]) -> bool:
    """Whether no two of these hit the same process at once."""
    blows = [each for each in script.blows if each.kind in kinds]
    return not any(
        one.target == other.target and one.at_s <= other.at_s < one.at_s + one.for_s
        for one in blows
        for other in blows
        if one is not other
    )


@pytest.mark.parametrize("size", [FULL, SHORT])
def test_a_seed_replays_its_script(size: Size) -> None:
    """Another seed has another one."""
    assert plan(3, size) == plan(3, size)
    assert plan(3, size).shots != plan(4, size).shots
    assert plan(3, size).blows != plan(4, size).blows


def test_a_full_run_has_everything_in_it() -> None:
    """At least 10,000 requests, kills of each kind, 20 s cuts of each way, a full disk."""
    for seed in range(5):
        script = plan(seed, FULL)
        assert len(script.shots) >= 10_000
        killed = Counter(each.target.partition("-")[0] for each in of(script, "kill"))
        assert killed == {"gateway": 8, "worker": 6, "redis": 4, "postgres": 4}
        cut = of(script, "cut")
        assert {each.target.partition("-")[0] for each in cut} == {"redis", "postgres", "worker"}
        assert {each.for_s for each in cut} == {20.0}
        assert {"redis", "postgres"} <= {each.target for each in cut}
        for kind, count in {"disk": 1, "ship": 2, "stop": 2, "pause": 2, "leave": 1}.items():
            assert len(of(script, kind)) == count
        assert apart(script, ("kill", "ship", "stop", "pause", "leave"))


def of(script: Script, kind: str) -> list[Blow]:
    """All of a kind."""
    return [each for each in script.blows if each.kind == kind]
