"""The parts of what usage cost."""

from typing import Any

import pytest
from price_examples import a_price

from billing.domain.cost_lines import CostLine, Rated, cost_lines
from billing.domain.rating import cost_pico

PRICE = a_price(
    input_pico=1_000_000, cached_input_pico=100_000, output_pico=4_000_000, reasoning_pico=5_000_000
)


def usage(**changes: Any) -> Rated:
    """Two requests of 1,000 prompt tokens, 600 of them cached, and 300 output, 100 of reasoning."""
    cost = 400 * 1_000_000 + 600 * 100_000 + 200 * 4_000_000 + 100 * 5_000_000
    return Rated("m", PRICE, 2, 1_000, 600, 300, 100, cost, 0)._replace(**changes)


def test_each_kind_is_a_line() -> None:
    """With its tokens and what they cost."""
    assert cost_lines(usage()) == [
        CostLine("m, input_tokens", 400, "tokens", 400_000_000),
        CostLine("m, cached_input_tokens", 600, "tokens", 60_000_000),
        CostLine("m, output_tokens", 200, "tokens", 800_000_000),
        CostLine("m, reasoning_tokens", 100, "tokens", 500_000_000),
    ]


def test_a_price_of_a_request_is_a_line() -> None:
    """Once a request; a kind that was not used is none, and what is free is one of 0."""
    free = a_price(input_pico=0, cached_input_pico=None, output_pico=0, request_pico=7)
    found = cost_lines(usage(price=free, cost_pico=14, reasoning_tokens=0, cached_prompt_tokens=0))
    assert [line[:4] for line in found] == [
        ("m, input_tokens", 1_000, "tokens", 0),
        ("m, output_tokens", 300, "tokens", 0),
        ("m, requests", 2, "requests", 14),
    ]


def test_what_has_no_price_is_never_0() -> None:
    """B20, B26: a line without an amount, that says how many."""
    assert cost_lines(usage(price=None, cost_pico=0, unpriced_requests=2)) == [
        CostLine("m, unpriced", 2, "requests", None, 2)
    ]
    assert cost_lines(usage(price=None, cost_pico=0)) == []


@pytest.mark.parametrize("cached", [(10, 20, 20, 3), (10, 20, 5, 0)])
def test_counts_that_contradict_each_other_are_one_line(cached: tuple[int, int, int, int]) -> None:
    """An engine that says more cached than prompt is charged for the prompt: sums do not show it,
    and the whole still is what the requests cost."""
    first_prompt, first_cached, prompt, more_cached = cached
    cost = sum(
        cost_pico(PRICE, prompt_tokens=all_of_it, cached_tokens=part, output_tokens=0)
        for all_of_it, part in ((first_prompt, first_cached), (prompt, more_cached))
    )
    found = cost_lines(
        Rated("m", PRICE, 2, first_prompt + prompt, first_cached + more_cached, 0, 0, cost, 0)
    )
    assert sum(line.pico or 0 for line in found) == cost
    assert found == [CostLine("m, other", None, None, cost)]
