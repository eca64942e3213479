"""When a budget is worth a word."""

import pytest

from billing.domain.budget_alert import Budget, Spent, crossed

TENANT = Budget("acme", None, None, 1_000)


def thresholds(limit_pico: int, spent_pico: int) -> list[int]:
    """Of one budget of a tenant."""
    found = crossed([TENANT._replace(limit_pico=limit_pico)], [Spent("k", "m", spent_pico)])
    return [each.threshold_percent for each in found]


@pytest.mark.parametrize(
    ("limit_pico", "spent_pico", "wanted"),
    [
        (1_000, 0, []),
        (1_000, 799, []),
        (1_000, 800, [80]),
        (1_000, 999, [80]),
        (1_000, 1_000, [80, 100]),
        (1_000, 1_200, [80, 100]),
        (10**24, 8 * 10**23 - 1, []),
        (10**24, 8 * 10**23, [80]),
        (3, 2, []),
        (0, 0, []),
        (0, 1, [80, 100]),
    ],
)
def test_a_threshold_is_reached_to_the_pico(
    limit_pico: int, spent_pico: int, wanted: list[int]
) -> None:
    """Several at once in order. Of a budget of 0 nothing is reached until something was spent."""
    assert thresholds(limit_pico, spent_pico) == wanted


def test_each_budget_counts_what_it_is_for() -> None:
    """Its key, its model, or both; what has no price is said and counts nowhere."""
    spent = [Spent("k", "m", 500, 1), Spent("k", "n", 400), Spent("j", "m", 90, 2)]
    budgets = [
        TENANT,
        Budget("acme", "k", None, 900),
        Budget("acme", None, "m", 590),
        Budget("acme", "j", "m", 100),
        Budget("acme", "j", "n", 1),
    ]
    assert [(each.budget, *each[1:]) for each in crossed(budgets, spent)] == [
        (budgets[0], 80, 990, 3),
        (budgets[1], 80, 900, 1),
        (budgets[1], 100, 900, 1),
        (budgets[2], 80, 590, 3),
        (budgets[2], 100, 590, 3),
        (budgets[3], 80, 90, 2),
    ]


def test_b01_no_budget_no_alert() -> None:
    """B01: whatever was spent."""
    assert crossed([], [Spent("k", "m", 10**30)]) == []
