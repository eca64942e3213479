"""The storm's count of money fails where a pico too much was spent. A token costs 10 pico."""

from dataclasses import replace

from storm.charges import SETTLED_WITHIN_MS
from storm.check_spend import check_spend
from storm.history import LOST, Finding
from storm.made_up import MadeUp, fixed


def spend(made: MadeUp, budget: int) -> list[Finding]:
    """What is found under that budget."""
    return check_spend(made.history(budgets=fixed(budget)))


def test_one_pico_too_much() -> None:
    """R26: with a maximum nothing passes the budget, however far apart in the month."""
    made = MadeUp()
    for at_ms in (0, 100, 10**9):
        made.ran(at_ms, at_ms + 50)
    assert spend(made, 900) == []
    (finding,) = spend(made, 899)
    assert finding.rule == "spend"
    assert finding.what.startswith("900 in the ")


def test_an_own_excess_is_all_that_is_excused() -> None:
    """It reserved 110 at least and cost 400; then nothing is left, for anybody."""
    made = MadeUp()
    made.ran(0, 100, output=30, maximum=None)
    made.ran(10, 100, prompt=1, output=9)
    assert spend(made, 210) == []
    made.ran(101 + SETTLED_WITHIN_MS, 5_000, prompt=1, output=0)
    assert spend(made, 210)
    assert spend(made, 510) == []


def test_what_a_killed_gateway_ran_is_free() -> None:
    """It is ours to pay."""
    made = MadeUp()
    made.ran(0, 100)
    made.ran(0, 100, outcome=LOST)
    assert spend(made, 300) == []


def test_a_record_says_what_it_costs() -> None:
    """By the engine's count, to the pico; and never nothing."""
    made = MadeUp()
    made.ran(0, 100)
    for cost in (299, None):
        made.rows[0] = replace(made.rows[0], cost_pico=cost)
        assert [finding.rule for finding in spend(made, 300)] == ["cost"]
