"""What the use of the past would cost at other prices."""

from price_examples import a_price

from billing.domain.price_book import PriceBook
from billing.domain.price_effect import Effect, Used, effect_of, effects_of

USED = Used("acme", "m", "self", "batch", "USD", 10, 1_000, 400, 50, 20, 123)


def test_all_of_it_is_rated_at_both() -> None:
    """600 of prompt, 400 cached, 30 of output, 20 of reasoning, 10 requests: by hand."""
    before = a_price(id=1)
    after = a_price(id=2, tenant_id="acme", request_class="batch", effective_from_ms=5,
                    input_pico=2_000_000, reasoning_pico=5_000_000, request_pico=7)  # fmt: skip
    (effect,) = effect_of([USED], PriceBook([before]), PriceBook([before, after]), at_ms=5)
    assert effect == Effect(
        5,
        "acme",
        "USD",
        requests=10,
        cost_pico=123,
        before_pico=600 * 1_000_000 + 400 * 100_000 + 50 * 4_000_000,
        after_pico=600 * 2_000_000 + 400 * 100_000 + 30 * 4_000_000 + 20 * 5_000_000 + 10 * 7,
        unpriced_before=0,
        unpriced_after=0,
    )


def test_tenants_and_currencies_are_apart_and_what_has_no_price_is_counted() -> None:
    """B20: it adds nothing to a sum, and is said beside it."""
    used = [
        USED,
        USED._replace(model="other"),
        USED._replace(currency="JPY"),
        USED._replace(tenant_id="a"),
    ]
    book = PriceBook([a_price(currency="JPY")])
    found = effect_of(used, PriceBook([]), book, at_ms=1)
    assert [(e.tenant_id, e.currency, e.requests) for e in found] == [
        ("a", "USD", 10),
        ("acme", "JPY", 10),
        ("acme", "USD", 20),
    ]
    assert [(e.unpriced_before, e.unpriced_after) for e in found] == [(10, 10), (10, 0), (20, 20)]
    assert found[1].before_pico == 0 < found[1].after_pico


def test_each_instant_has_its_own_effect() -> None:
    """Dear for a while and then as before: both are told, and an instant that changes nothing for
    anybody is not."""
    before = PriceBook([a_price(id=1)])
    dear = a_price(id=2, effective_from_ms=5, input_pico=100_000_000)
    after = PriceBook([a_price(id=1), dear, a_price(id=3, effective_from_ms=9)])
    found = effects_of([USED, USED._replace(tenant_id="b")], before, after, [9, 5, 7])
    assert [(e.at_ms, e.tenant_id, e.after_pico - e.before_pico) for e in found] == [
        (5, "acme", 600 * 99_000_000),
        (5, "b", 600 * 99_000_000),
        (9, "acme", 0),
        (9, "b", 0),
    ]
