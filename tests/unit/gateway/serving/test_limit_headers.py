import hypothesis.strategies as st
import pytest
from hypothesis import given
from tenant_examples import a_tenant

from billing.domain.money import parse_amount
from gateway.domain.scopes import ScopeLimits, ScopeUse
from gateway.serving.limit_headers import duration, limit_headers
from gateway.serving.month_now import month_now

NOON = 1_796_040_000_000
"""2026-11-30T12:00:00Z: twelve hours before the month ends in UTC."""
MONTH = month_now(a_tenant(), NOON)


def pico(amount: str) -> int:
    return parse_amount(amount, "USD")


def use(
    *,
    sequences: tuple[int, int | None] = (0, None),
    tokens: tuple[int, int | None] = (0, None),
    requests: tuple[int, int | None] = (0, None),
    reset_ms: int = 0,
    budget: str | None = None,
    money: tuple[str, str] | None = None,
) -> ScopeUse:
    spent, reserved = (None, None) if money is None else (pico(each) for each in money)
    limit = None if budget is None else pico(budget)
    limits = ScopeLimits("tenant", 1, sequences[1], tokens[1], requests[1], limit)
    return ScopeUse(limits, sequences[0], tokens[0], requests[0], reset_ms, spent, reserved)


def test_without_limits_there_are_no_headers() -> None:
    """DESIGN 2.2: absent, not zero and not infinite."""
    assert limit_headers([use(tokens=(7, None))], MONTH) == []


def test_the_tightest_scope_is_shown() -> None:
    """Not the widest, and each kind on its own; R18: what remains is after this request."""
    headers = dict(
        limit_headers(
            [
                use(tokens=(900, 1000), sequences=(1, 8), reset_ms=61_000),
                use(tokens=(10, 100), sequences=(7, 8), reset_ms=2_000),
            ],
            MONTH,
        )
    )
    assert headers == {
        b"x-ratelimit-limit-tokens": b"100",
        b"x-ratelimit-remaining-tokens": b"90",
        b"x-ratelimit-reset-tokens": b"2s",
        b"x-ratelimit-limit-sequences": b"8",
        b"x-ratelimit-remaining-sequences": b"1",
    }


def test_a_debt_remains_zero() -> None:
    """L18: never negative, never more than the limit."""
    headers = dict(limit_headers([use(requests=(9, 5), reset_ms=500)], MONTH))
    assert headers[b"x-ratelimit-remaining-requests"] == b"0"
    assert headers[b"x-ratelimit-reset-requests"] == b"500ms"


def test_what_a_budget_has_left_is_neither_spent_nor_reserved() -> None:
    """The tightest of them, to the last digit, until the month ends where the tenant is billed."""
    uses = [
        use(budget="5.00", money=("1.50", "0.25")),
        use(budget="100.00", money=("99.00", "0.50")),
        use(money=("99.00", "0.50")),
    ]
    assert dict(limit_headers(uses, MONTH)) == {
        b"x-ratelimit-limit-budget": b"100.00",
        b"x-ratelimit-remaining-budget": b"0.50",
        b"x-ratelimit-reset-budget": b"12h0m0s",
    }
    tokyo = month_now(a_tenant(time_zone="Asia/Tokyo"), NOON)
    assert dict(limit_headers(uses, tokyo))[b"x-ratelimit-reset-budget"] == b"3h0m0s"
    overdrawn = limit_headers([use(budget="1.00", money=("2.00", "0.00"))], MONTH)
    assert dict(overdrawn)[b"x-ratelimit-remaining-budget"] == b"0.00"


def test_a_budget_of_which_nothing_is_known_is_not_shown() -> None:
    """M23: absent, never as if nothing was spent."""
    assert limit_headers([use(budget="5.00")], MONTH) == []


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (1000, "1s"),
        (1001, "2s"),
        (59_001, "1m0s"),
        (360_000, "6m0s"),
        (3_600_000, "1h0m0s"),
        (-5, "0ms"),
    ],
)
def test_durations_are_written_as_openai_does(ms: int, text: str) -> None:
    """S21: `1s`, `6m0s`; rounded up, so that who waits so long has waited enough."""
    assert duration(ms) == text


@given(ms=st.integers(0, 10**8))
def test_a_duration_is_never_too_short(ms: int) -> None:
    """Read back, it is at least what was meant and less than a second more."""
    text = duration(ms)
    if text.endswith("ms"):
        assert int(text[:-2]) == ms
        return
    seconds = 0
    for unit, size in (("h", 3600), ("m", 60), ("s", 1)):
        if unit in text:
            number, _, text = text.partition(unit)
            seconds += int(number) * size
    assert ms <= seconds * 1000 < ms + 1000
