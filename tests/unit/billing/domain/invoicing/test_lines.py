import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invoice_examples import VAT, a_group
from msgspec.structs import replace
from price_examples import a_price

from billing.domain.invoicing.lines import LinesDisagree, lines_of, show_unit_price
from billing.domain.invoicing.rounding import show_minor
from billing.domain.invoicing.totals import totals_of
from billing.domain.invoicing.usage_group import LineKind, UsageGroup
from billing.domain.money import UnknownCurrency

COUNT = st.integers(0, 10**12)
PICO = st.integers(0, 10**12)
PRICES = st.builds(
    a_price,
    id=st.integers(1, 4),
    currency=st.just("KWD"),
    input_pico=PICO,
    cached_input_pico=st.none() | PICO,
    output_pico=PICO,
    reasoning_pico=st.none() | PICO,
    request_pico=PICO,
)
GROUPS = st.lists(
    st.builds(
        a_group,
        PRICES,
        kind=st.sampled_from(LineKind),
        month=st.sampled_from(["2026-09", "2026-10"]),
        request_class=st.sampled_from(["interactive", "batch"]),
        requests=COUNT,
        uncached_prompt_tokens=COUNT,
        cached_prompt_tokens=COUNT,
        output_tokens=COUNT,
        reasoning_tokens=COUNT,
    ),
    max_size=6,
    unique_by=lambda group: group.price.id,
)


def test_each_unit_is_a_line_that_a_calculator_checks() -> None:
    """1,500,000 prompt tokens at 1.00 a million, 2,345,000 cached ones at 0.10, 100,001 of output
    at 4.00, 7 of reasoning at 9.00, 30 requests at 0.002."""
    price = a_price(reasoning_pico=9_000_000, request_pico=2 * 10**9)
    group = a_group(
        price,
        requests=30,
        uncached_prompt_tokens=1_500_000,
        cached_prompt_tokens=2_345_000,
        output_tokens=100_001,
        reasoning_tokens=7,
    )
    lines = lines_of([group], "USD", VAT)
    shown = [
        (line.position, line.unit, line.quantity, show_unit_price(line, "USD"), line.amount_minor)
        for line in lines
    ]
    assert shown == [
        (1, "input_tokens", 1_500_000, "1.00", 150),
        (2, "cached_input_tokens", 2_345_000, "0.10", 23),
        (3, "output_tokens", 100_001, "4.00", 40),
        (4, "reasoning_tokens", 7, "9.00", 0),
        (5, "requests", 30, "0.002", 6),
    ]
    assert [line.amount_pico for line in lines][3] == 63_000_000
    assert {line.tax_rate_milli_percent for line in lines} == {20_000}


def test_without_prices_of_their_own_cached_cost_as_input_and_reasoning_as_output() -> None:
    price = a_price(cached_input_pico=None)
    group = a_group(price, cached_prompt_tokens=10**6, reasoning_tokens=10**6)
    assert [line.amount_minor for line in lines_of([group], "USD", VAT)] == [100, 400]


def test_nothing_used_has_no_line_and_what_is_free_has_one_of_nothing() -> None:
    """Also requests, which a price that does not speak of them has no line for."""
    free = a_price(input_pico=0)
    lines = lines_of([a_group(free, uncached_prompt_tokens=5, requests=3)], "USD", VAT)
    assert [(line.unit, line.quantity, line.amount_minor) for line in lines] == [
        ("input_tokens", 5, 0)
    ]
    assert lines_of([a_group()], "USD", VAT) == ()


def test_v46_a_price_that_changes_makes_two_lines() -> None:
    """Use before the change at the old price, after it at the new: neither at a mean of both."""
    dearer = a_price(id=8, input_pico=2_000_000, effective_from_ms=1)
    groups = [
        a_group(dearer, uncached_prompt_tokens=1_000_000),
        a_group(uncached_prompt_tokens=3_000_000),
    ]
    lines = lines_of(groups, "USD", VAT)
    assert [(line.price_id, line.amount_minor) for line in lines] == [(7, 300), (8, 200)]


def test_usage_comes_before_adjustments_by_month() -> None:
    """Each adjustment is named with its own month."""
    groups = [
        a_group(output_tokens=1, kind=LineKind.ADJUSTMENT, month="2026-10"),
        a_group(output_tokens=1, kind=LineKind.ADJUSTMENT, month="2026-09"),
        a_group(output_tokens=1),
    ]
    lines = lines_of(groups, "USD", VAT)
    assert [(line.kind.value, line.month) for line in lines] == [
        ("usage", "2026-11"),
        ("adjustment", "2026-09"),
        ("adjustment", "2026-10"),
    ]


@given(GROUPS, st.randoms(use_true_random=False))
def test_v31_v32_lines_do_not_depend_on_the_order_or_cut_of_groups(
    groups: list[UsageGroup], chance: random.Random
) -> None:
    """Made again they are the same, as many, in the same order: from groups in another order, and
    from one that comes in two parts."""
    lines = lines_of(groups, "KWD", VAT)
    assert lines_of(groups, "KWD", VAT) == lines
    cut = [part for group in groups for part in halves(group)]
    chance.shuffle(cut)
    assert lines_of(cut, "KWD", VAT) == lines
    assert [line.position for line in lines] == list(range(1, len(lines) + 1))


def halves(group: UsageGroup) -> tuple[UsageGroup, UsageGroup]:
    """A group in two, which together are it."""
    names = (
        "requests",
        "uncached_prompt_tokens",
        "cached_prompt_tokens",
        "output_tokens",
        "reasoning_tokens",
    )
    first = {name: getattr(group, name) // 3 for name in names}
    rest = {name: getattr(group, name) - first[name] for name in names}
    same = {"kind": group.kind, "month": group.month, "request_class": group.request_class}
    return a_group(group.price, **same, **first), a_group(group.price, **same, **rest)


@given(GROUPS)
def test_inv_7_lines_sum_to_what_the_records_cost(groups: list[UsageGroup]) -> None:
    """To the pico, whatever the currency's decimals; and each is its quantity times its price."""
    lines = lines_of(groups, "KWD", VAT)
    assert sum(line.amount_pico for line in lines) == sum(group.cost_pico for group in groups)
    for line in lines:
        assert line.quantity * line.unit_price_pico == line.amount_pico
        assert abs(line.amount_pico - line.amount_minor * 10**9) * 2 <= 10**9


def test_what_records_cost_and_quantities_make_must_be_one() -> None:
    """By a single pico-unit, and where two groups would make up for each other."""
    group = a_group(output_tokens=10)
    more, less = (replace(group, cost_pico=group.cost_pico + by) for by in (1, -1))
    for wrong in ([more], [less], [more, less]):
        with pytest.raises(LinesDisagree, match="quantities make 40000000 pico USD"):
            lines_of(wrong, "USD", VAT)


def test_a_price_of_another_currency_or_a_negative_quantity_is_an_error() -> None:
    with pytest.raises(LinesDisagree, match="price 7 is in USD, not JPY"):
        lines_of([a_group(output_tokens=1)], "JPY", VAT)
    with pytest.raises(LinesDisagree, match="negative"):
        lines_of([a_group(output_tokens=-1)], "USD", VAT)


def test_one_price_does_not_say_two_things() -> None:
    """Rows of one id at different prices would be added up at one of them."""
    changed = a_price(output_pico=5_000_000)
    with pytest.raises(LinesDisagree, match="two prices of output_tokens"):
        lines_of([a_group(output_tokens=1), a_group(changed, output_tokens=1)], "USD", VAT)


def test_v20_an_invoice_in_an_unknown_currency_is_refused() -> None:
    with pytest.raises(UnknownCurrency):
        lines_of([a_group(a_price(currency="ZZZ"), output_tokens=1)], "ZZZ", VAT)


def test_v17_the_subtotal_is_the_sum_of_what_the_lines_show() -> None:
    """Three lines of 0.005 are 0.01 each and 0.03 together, not 0.02: 55 at 0.067 is 3.69."""
    price = a_price(input_pico=67 * 10**9)
    odd = [a_group(replace(price, id=each), uncached_prompt_tokens=55) for each in range(3)]
    lines = lines_of(odd, "USD", VAT)
    assert [show_minor(line.amount_minor, "USD") for line in lines] == ["3.69"] * 3
    assert totals_of(lines, [VAT]).subtotal_minor == 3 * 369
