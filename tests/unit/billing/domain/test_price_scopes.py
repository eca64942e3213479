"""Whose price holds: the tenant's own, its plan's, the list's; the class's before that of both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from price_examples import a_price

from billing.domain.price_book import Membership, Price, PriceBook
from billing.domain.price_lines import Timeline, layered

OF_ACME = {"tenant_id": "acme"}
OF_GOLD = {"plan": "gold"}
BATCH = {"request_class": "batch"}


def member(plan: str | None, at_ms: int, tenant_id: str = "acme") -> Membership:
    return Membership(tenant_id=tenant_id, plan=plan, effective_from_ms=at_ms)


def asked(book: PriceBook, at_ms: int, **whose: str) -> int | None:
    """The id of the price that holds."""
    price = book.price_at("m", "self", "USD", at_ms, **whose)
    return None if price is None else price.id


def test_the_tenants_own_comes_before_its_plans_and_the_lists() -> None:
    book = PriceBook(
        [a_price(id=1), a_price(id=2, **OF_GOLD), a_price(id=3, **OF_ACME)],
        [member("gold", 0), member("gold", 0, "globex")],
    )
    assert asked(book, 5) == 1
    assert asked(book, 5, tenant_id="acme") == 3
    assert asked(book, 5, tenant_id="globex") == 2
    assert asked(book, 5, tenant_id="other") == 1


def test_a_class_of_its_own_comes_before_both_within_a_level_only() -> None:
    """The tenant's price of both classes goes before the list's price of one."""
    book = PriceBook(
        [a_price(id=1), a_price(id=2, **BATCH), a_price(id=3, **OF_ACME)],
    )
    assert asked(book, 5, request_class="batch") == 2
    assert asked(book, 5, request_class="interactive") == 1
    assert asked(book, 5, tenant_id="acme", request_class="batch") == 3
    own = PriceBook([a_price(id=1), a_price(id=4, **OF_ACME, **BATCH)])
    assert asked(own, 5, tenant_id="acme", request_class="batch") == 4
    assert asked(own, 5, tenant_id="acme", request_class="interactive") == 1


def test_a_plan_holds_from_its_instant_on_and_its_prices_from_theirs() -> None:
    """V46: by the plan at the arrival, whatever it is later."""
    book = PriceBook(
        [a_price(id=1), a_price(id=2, effective_from_ms=200, **OF_GOLD)],
        [member("gold", 100), member(None, 300), member("gold", 400)],
    )
    for at_ms, found in ((99, 1), (150, 1), (200, 2), (299, 2), (300, 1), (399, 1), (400, 2)):
        assert asked(book, at_ms, tenant_id="acme") == found, at_ms
    assert [book.plan_at("acme", at_ms) for at_ms in (99, 100, 300)] == [None, "gold", None]
    assert book.plan_at("globex", 100) is None


def test_what_is_withdrawn_lets_the_next_hold() -> None:
    """And may begin again. No price is ever the one that withdraws."""
    book = PriceBook(
        [
            a_price(id=1),
            a_price(id=2, effective_from_ms=10, **OF_ACME),
            a_price(id=3, effective_from_ms=20, withdrawn=True, **OF_ACME),
            a_price(id=4, effective_from_ms=30, **OF_ACME),
            a_price(id=5, effective_from_ms=10, **BATCH),
            a_price(id=6, effective_from_ms=20, withdrawn=True, **BATCH),
        ]
    )
    at = (9, 10, 19, 20, 29, 30)
    assert [asked(book, each, tenant_id="acme") for each in at] == [1, 2, 2, 1, 1, 4]
    assert [asked(book, each, request_class="batch") for each in at] == [1, 5, 5, 1, 1, 1]


def test_a_model_without_any_price_is_unpriced() -> None:
    """V47, B26: another's price, another class's or another plan's is not one for it."""
    book = PriceBook(
        [a_price(id=1, **OF_ACME, **BATCH), a_price(id=2, **OF_GOLD)], [member("silver", 0)]
    )
    assert asked(book, 5, tenant_id="acme", request_class="interactive") is None
    assert asked(book, 5, tenant_id="globex", request_class="batch") is None
    assert asked(book, 5) is None


@pytest.mark.parametrize("scope", [{}, OF_ACME, OF_GOLD, BATCH])
def test_two_of_one_line_never_begin_together(scope: dict[str, str]) -> None:
    two = [a_price(id=1, **scope), a_price(id=2, **scope)]
    with pytest.raises(ValueError, match="same instant"):
        PriceBook(two)
    PriceBook([two[0], a_price(id=2, **scope, effective_from_ms=1)])
    PriceBook([a_price(id=1), a_price(id=2, **OF_ACME), a_price(id=3, **OF_GOLD)])
    with pytest.raises(ValueError, match="same instant"):
        PriceBook([], [member("gold", 1), member("silver", 1)])


prices = st.lists(
    st.builds(
        lambda at_ms, whose, of, withdrawn: a_price(
            effective_from_ms=at_ms, request_class=of, withdrawn=withdrawn, **whose
        ),
        st.integers(0, 30),
        st.sampled_from([{}, OF_ACME, {"tenant_id": "globex"}, OF_GOLD, {"plan": "silver"}]),
        st.sampled_from([None, "interactive", "batch"]),
        st.booleans(),
    ),
    max_size=14,
    unique_by=lambda p: (p.tenant_id, p.plan, p.request_class, p.effective_from_ms),
)
members = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["gold", "silver", None])),
    max_size=4,
    unique_by=lambda each: each[0],
)


@given(prices, members, st.integers(-1, 31), st.sampled_from([None, "interactive", "batch"]))
def test_it_is_what_is_found_by_looking_at_each(
    drawn: list[Price], plans: list[tuple[int, str | None]], at_ms: int, of: str | None
) -> None:
    """Level by level, the class's own first, the latest that has begun."""
    drawn = [each for each in drawn if not (each.withdrawn and _is_plain(each))]
    book = PriceBook(drawn, [member(plan, at) for at, plan in plans])
    plan = max(((at, name) for at, name in plans if at <= at_ms), default=(0, None))[1]

    def of_line(tenant_id: str | None, of_plan: str | None, line: str | None) -> Price | None:
        begun = [
            each
            for each in drawn
            if (each.tenant_id, each.plan, each.request_class) == (tenant_id, of_plan, line)
            and each.effective_from_ms <= at_ms
        ]
        last = max(begun, key=lambda each: each.effective_from_ms, default=None)
        return None if last is None or last.withdrawn else last

    levels = [("acme", None), (None, plan), (None, None)]
    found = [
        price
        for tenant_id, of_plan in levels
        for line in (of, None)
        if (price := of_line(tenant_id, of_plan, line)) is not None
    ]
    whose = {"tenant_id": "acme", "request_class": of}
    assert book.price_at("m", "self", "USD", at_ms, **whose) == (found[0] if found else None)


def _is_plain(price: Price) -> bool:
    return (price.tenant_id, price.plan, price.request_class) == (None, None, None)


def test_lines_lie_over_each_other() -> None:
    over = layered(Timeline([(10, "a"), (20, None)]), Timeline([(5, "x"), (15, "y"), (30, None)]))
    seen = [over.at(at_ms) for at_ms in (4, 5, 10, 15, 20, 29, 30)]
    assert seen == [None, "x", "a", "a", "y", "y", None]
