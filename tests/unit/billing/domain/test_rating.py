import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from usage_examples import a_record

from billing.domain.money import parse_amount
from billing.domain.price_book import (
    PRICE_PICO_MAX,
    REQUEST_PICO_MAX,
    TOKENS_COVERED,
    Membership,
    Price,
    PriceBook,
)
from billing.domain.rating import COST_PICO_MAX, Cost, cost_pico, most_pico, rate, rated

PRICE = Price(
    id=7,
    model="m",
    provider="self",
    currency="USD",
    input_pico=1_000_000,
    cached_input_pico=100_000,
    output_pico=4_000_000,
    effective_from_ms=1_000,
)
PICO = st.integers(0, PRICE_PICO_MAX)
COUNT = st.integers(0, 2**31 - 1)
PRICES = st.builds(
    replace,
    st.just(PRICE),
    input_pico=PICO,
    cached_input_pico=st.none() | PICO,
    output_pico=PICO,
    reasoning_pico=st.none() | PICO,
    request_pico=st.integers(0, REQUEST_PICO_MAX),
)


def cost_of(price: Price = PRICE, **tokens: int) -> int:
    """The cost of tokens of which most are none."""
    counts = {"prompt_tokens": 0, "cached_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0}
    return cost_pico(price, **{**counts, **tokens})


def a_cost(book: PriceBook, **changes: object) -> Cost:
    """A completed request of 1,000 prompt tokens, 900 of them cached, and 50 of output."""
    fields: dict[str, object] = {
        "model": "m",
        "provider": "self",
        "currency": "USD",
        "admitted_at_ms": 1_500,
        "prompt_tokens": 1_000,
        "cached_tokens": 900,
        "output_tokens": 50,
        "reasoning_tokens": 0,
        "billable": True,
    }
    return rate(book, **{**fields, **changes})  # type: ignore[arg-type]


def test_cached_tokens_cost_their_own_price() -> None:
    """B18: 1,000 of which 900 cached, at 1.0 and 0.1, is 100·1.0 + 900·0.1; V36 likewise."""
    assert cost_of(prompt_tokens=1_000, cached_tokens=900) == 100 * 1_000_000 + 900 * 100_000
    assert cost_of(prompt_tokens=1_000, cached_tokens=400) == 600 * 1_000_000 + 400 * 100_000


def test_cached_tokens_without_a_price_of_their_own_cost_the_prompts() -> None:
    price = replace(PRICE, cached_input_pico=None)
    assert cost_of(price, prompt_tokens=1_000, cached_tokens=900) == 1_000 * 1_000_000


def test_a_free_cache_is_not_a_missing_price() -> None:
    """B26: 0 is a price that someone wrote."""
    assert cost_of(replace(PRICE, cached_input_pico=0), prompt_tokens=10, cached_tokens=10) == 0


def test_cached_tokens_beyond_the_prompt_never_make_a_credit() -> None:
    """S10: prompt 56,322 with 72,960 cached costs 56,322 cached tokens."""
    assert cost_of(prompt_tokens=56_322, cached_tokens=72_960) == 56_322 * 100_000


@pytest.mark.parametrize("reasoning", [0, 30, 50, 80])
def test_reasoning_is_a_part_of_the_output(reasoning: int) -> None:
    """V39: kinds partition the total; none is charged twice."""
    assert cost_of(output_tokens=50, reasoning_tokens=reasoning) == 50 * 4_000_000


@pytest.mark.parametrize(
    ("reasoning", "cost"), [(0, 50 * 4), (30, 20 * 4 + 30 * 6), (50, 50 * 6), (80, 50 * 6)]
)
def test_reasoning_may_have_a_price_of_its_own(reasoning: int, cost: int) -> None:
    """V39: never on top of the output, and never more of it than there is output."""
    price = replace(PRICE, reasoning_pico=6_000_000)
    assert cost_of(price, output_tokens=50, reasoning_tokens=reasoning) == cost * 1_000_000


def test_a_request_has_a_price_whatever_its_tokens() -> None:
    """Once a record, also where nothing was generated and where it has several sequences."""
    price = replace(PRICE, request_pico=5_000_000_000)
    assert cost_of(price) == 5_000_000_000
    assert cost_of(price, output_tokens=50) == 5_000_000_000 + 50 * 4_000_000
    assert most_pico(price, prompt_tokens=0, output_tokens=1) == 5_000_000_000 + 4_000_000


@pytest.mark.parametrize(("cached", "dollars"), [(0, "1.592170"), (159_217, "0.159217")])
def test_a_prompt_that_fills_the_cache_is_paid_for_once(cached: int, dollars: str) -> None:
    """B19: 159,217 tokens at 10 and 1 a million: what is written to the cache is a prompt token,
    what is read from it a cached one, and nothing is both. Exact to the last digit."""
    price = replace(PRICE, input_pico=10_000_000, cached_input_pico=1_000_000)
    cost = cost_of(price, prompt_tokens=159_217, cached_tokens=cached)
    assert cost == parse_amount(dollars, "USD", decimals_max=6)


@pytest.mark.parametrize("field", ["prompt_tokens", "output_tokens"])
def test_a_negative_count_is_an_error(field: str) -> None:
    counts = {"prompt_tokens": 1, "output_tokens": 1} | {field: -1}
    with pytest.raises(ValueError, match="never negative"):
        cost_of(PRICE, **counts)


@given(
    PRICES,
    st.tuples(COUNT, COUNT),
    st.integers(-5, 2**32),
    st.integers(-5, 2**32),
    st.tuples(COUNT, COUNT),
)
def test_nothing_costs_more_than_the_most(
    price: Price, used: tuple[int, int], cached: int, reasoning: int, unused: tuple[int, int]
) -> None:
    """What is reserved covers whatever a request of at most that size turns out to cost."""
    (prompt, output), (more_prompt, more_output) = used, unused
    cost = cost_of(
        price,
        prompt_tokens=prompt,
        cached_tokens=cached,
        output_tokens=output,
        reasoning_tokens=reasoning,
    )
    most = most_pico(price, prompt_tokens=prompt + more_prompt, output_tokens=output + more_output)
    assert 0 <= cost <= most


def test_a_cache_that_is_dearer_than_the_prompt_is_reserved_for() -> None:
    """Odd, but somebody may write it."""
    odd = replace(PRICE, cached_input_pico=3_000_000)
    assert most_pico(odd, prompt_tokens=10, output_tokens=1) == 10 * 3_000_000 + 4_000_000
    assert most_pico(PRICE, prompt_tokens=10, output_tokens=1) == 10 * 1_000_000 + 4_000_000


@given(PRICES, COUNT, COUNT, COUNT, COUNT)
def test_parts_cost_what_the_whole_costs(
    price: Price, prompt: int, cached: int, output: int, cut: int
) -> None:
    """Exact integers: however tokens are split over rows, the sum is the same to the pico, but for
    the price of a request, which each pays."""
    cached = min(cached, prompt)
    whole = cost_of(price, prompt_tokens=prompt, cached_tokens=cached, output_tokens=output)
    a, b, c = cut % (prompt - cached + 1), cut % (cached + 1), cut % (output + 1)
    first = cost_of(price, prompt_tokens=a + b, cached_tokens=b, output_tokens=c)
    rest = cost_of(
        price,
        prompt_tokens=prompt - a - b,
        cached_tokens=cached - b,
        output_tokens=output - c,
    )
    assert first + rest == whole + price.request_pico


def test_a_request_is_rated_at_the_price_of_its_admission() -> None:
    """V46: re-rating a closed month with a later price in the book gives the same."""
    later = replace(PRICE, id=8, input_pico=9, cached_input_pico=9, effective_from_ms=2_000)
    book = PriceBook([PRICE, later])
    cost = 100 * 1_000_000 + 900 * 100_000 + 50 * 4_000_000
    assert a_cost(book) == Cost(price_id=7, cost_pico=cost, list_cost_pico=cost, currency="USD")
    assert a_cost(book) == a_cost(PriceBook([PRICE]))
    assert a_cost(book, admitted_at_ms=2_000).price_id == 8


def test_what_is_not_billable_costs_the_tenant_nothing() -> None:
    """V44: its list price is kept, for the report."""
    found = a_cost(PriceBook([PRICE]), billable=False)
    assert found.cost_pico == 0
    assert found.list_cost_pico == 100 * 1_000_000 + 900 * 100_000 + 50 * 4_000_000


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "n"},
        {"provider": "hosted:simulated"},
        {"currency": "JPY"},
        {"admitted_at_ms": 999},
    ],
)
def test_what_has_no_price_is_unpriced_never_free(changes: dict[str, object]) -> None:
    """B20, B26, V47."""
    found = a_cost(PriceBook([PRICE]), **changes)
    currency = changes.get("currency", "USD")
    assert found == Cost(price_id=None, cost_pico=None, list_cost_pico=None, currency=str(currency))


def test_what_is_neither_priced_nor_billable_owes_nothing() -> None:
    found = a_cost(PriceBook(), billable=False)
    assert (found.cost_pico, found.list_cost_pico) == (0, None)


def test_free_is_a_price_of_its_own() -> None:
    free = replace(PRICE, input_pico=0, cached_input_pico=0, output_pico=0)
    found = a_cost(PriceBook([free]))
    assert (found.price_id, found.cost_pico, found.list_cost_pico) == (7, 0, 0)


@pytest.mark.parametrize(("over", "unpriced"), [(0, False), (1, True)])
def test_a_cost_that_no_column_holds_is_held_back(over: int, unpriced: bool) -> None:
    """Cut off at the column's end it would be wrong, and refused by Postgres it would be lost."""
    dear = replace(PRICE, input_pico=1, cached_input_pico=1)
    found = a_cost(PriceBook([dear]), prompt_tokens=COST_PICO_MAX + over, output_tokens=0)
    assert (found.cost_pico is None) is unpriced
    assert (found.price_id is None) is unpriced


def test_the_dearest_price_is_safe_for_a_whole_context() -> None:
    """What is written is checked once: a request of so many tokens is never beyond the column, at
    whatever price. Twice the bound would be."""
    dearest = replace(
        PRICE,
        input_pico=PRICE_PICO_MAX,
        cached_input_pico=PRICE_PICO_MAX,
        output_pico=PRICE_PICO_MAX,
        reasoning_pico=PRICE_PICO_MAX,
        request_pico=REQUEST_PICO_MAX,
    )
    for output in (0, TOKENS_COVERED // 2, TOKENS_COVERED):
        found = a_cost(
            PriceBook([dearest]), prompt_tokens=TOKENS_COVERED - output, output_tokens=output
        )
        assert found.cost_pico == TOKENS_COVERED * PRICE_PICO_MAX + REQUEST_PICO_MAX
        assert found.cost_pico <= COST_PICO_MAX
    assert 2 * TOKENS_COVERED * PRICE_PICO_MAX > COST_PICO_MAX


def test_a_rated_record_has_its_cost_and_is_otherwise_as_it_was() -> None:
    record = a_record(model="m", prompt_tokens=1_000, cached_prompt_tokens=900, output_tokens=50)
    cost = 100 * 1_000_000 + 900 * 100_000 + 50 * 4_000_000
    found = rated(record, PriceBook([PRICE]), "USD")
    assert found == replace(record, price_id=7, cost_pico=cost, list_cost_pico=cost, currency="USD")
    assert rated(found, PriceBook([PRICE]), "USD") == found


def test_a_record_is_rated_at_its_tenants_and_its_class_price() -> None:
    """Its plan's, where it has none of its own; another tenant's record beside it is not."""
    own = replace(PRICE, id=8, tenant_id="acme", request_class="batch", input_pico=1)
    planned = replace(PRICE, id=9, plan="gold", input_pico=2)
    member = Membership(tenant_id="acme", plan="gold", effective_from_ms=0)
    book = PriceBook([PRICE, own, planned], [member])

    def price_of(tenant_id: str, request_class: str) -> int | None:
        record = a_record(model="m", tenant_id=tenant_id, request_class=request_class)
        return rated(record, book, "USD").price_id

    assert price_of("acme", "batch") == 8
    assert price_of("acme", "interactive") == 9
    assert price_of("globex", "batch") == 7


def test_a_record_of_an_unknown_currency_has_no_cost() -> None:
    """One that a release without prices admitted."""
    record = a_record(model="m")
    assert rated(record, PriceBook([PRICE]), None) == record
