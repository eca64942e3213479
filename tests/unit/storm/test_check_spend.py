"""The storm's count of money fails where a pico too much was spent."""

from dataclasses import replace

from storm.check_spend import check_spend
from storm.made_up import TENANT, MadeUp, fixed


def test_one_pico_too_much() -> None:
    """R26: with a maximum nothing passes the budget."""
    made = MadeUp()
    for _ in range(3):
        made.ran(0, 100, cost_pico=100)
    assert not check_spend(made.history(budgets=fixed(300)))
    (finding,) = check_spend(made.history(budgets=fixed(299)))
    assert "300 pico spent, budget 299" in finding.what


def test_an_own_excess_is_all_that_is_excused() -> None:
    """Of each request without a maximum, what it may cost beyond its reservation."""
    made = MadeUp()
    made.ran(0, 100, cost_pico=400, maximum=None)
    made.ran(0, 100, cost_pico=100)
    history = made.history(budgets=fixed(300))
    assert check_spend(history)
    assert check_spend(replace(history, largest_pico={TENANT: 199}))
    assert not check_spend(replace(history, largest_pico={TENANT: 200}))


def test_a_record_without_a_cost_hides_nothing() -> None:
    """Under a budget every record has one."""
    made = MadeUp()
    made.ran(0, 100, cost_pico=None)
    assert [finding.rule for finding in check_spend(made.history(budgets=fixed(300)))] == [
        "unpriced"
    ]
