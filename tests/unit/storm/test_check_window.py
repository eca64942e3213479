"""The storm's count of a trailing minute fails where one token too many fell into it."""

import pytest
from storm.charges import SETTLED_WITHIN_MS
from storm.check_window import MINUTE_MS, check_requests, check_tokens, most_in_a_minute
from storm.history import Finding
from storm.made_up import ALL, MadeUp, edited, fixed


def tokens(made: MadeUp, limit: int) -> list[Finding]:
    """What is found under that TPM."""
    return check_tokens(made.history(tokens=fixed(limit)))


def test_one_token_too_many() -> None:
    """R08, R21, INV-3: 90 tokens within a minute that begins nowhere in particular."""
    made = MadeUp()
    for at_ms in (777, 30_000, 777 + MINUTE_MS - 1):
        made.ran(at_ms, at_ms + 50)
    (finding,) = tokens(made, 89)
    assert str(finding).startswith("tokens acme (tenant): 90 in the 60000 ms from 777, 89 allowed")
    assert tokens(made, 90) == []
    assert most_in_a_minute(made.history(), ALL) == 90


def test_a_minute_is_over_after_sixty_seconds() -> None:
    """The next one may begin then."""
    made = MadeUp()
    made.ran(777, 800)
    made.ran(777 + MINUTE_MS, 999 + MINUTE_MS)
    assert tokens(made, 30) == []
    assert most_in_a_minute(made.history(), ALL) == 30


def test_what_may_have_been_admitted_later_is_not_held_against_it() -> None:
    """It arrived within the minute, and reached the engine after it."""
    made = MadeUp()
    made.ran(0, 100)
    made.ran(MINUTE_MS - 10, MINUTE_MS + 100, admitted_within_ms=9)
    made.ran(MINUTE_MS - 10, MINUTE_MS + 100, admitted_within_ms=10)
    assert len(tokens(made, 59)) == 1
    assert tokens(made, 60) == []


def test_a_prompt_counts_once_and_every_choice() -> None:
    """10 of a prompt, three times 20 of output."""
    made = MadeUp()
    made.ran(0, 100, sequences=3)
    assert tokens(made, 69)
    assert not tokens(made, 70)


def test_a_lowered_limit_binds_the_next_admission_only() -> None:
    """What was admitted before stays in the window."""
    lowered = edited(60, 40, sent_ms=1_000, everywhere_ms=1_200)
    made = MadeUp()
    made.ran(0, 100)
    made.ran(1_100, 1_150)
    assert check_tokens(made.history(tokens=lowered)) == []
    made.ran(1_300, 1_400, output=1, prompt=1)
    assert check_tokens(made.history(tokens=lowered))


def test_a_raised_limit_does_not_excuse_what_came_before() -> None:
    """60 tokens stood above 40 before 100 were allowed."""
    raised = edited(40, 100, sent_ms=1_000, everywhere_ms=1_200)
    made = MadeUp()
    made.ran(0, 100)
    made.ran(500, 600)
    made.ran(2_000, 2_100)
    assert check_tokens(made.history(tokens=raised))


def test_without_a_maximum_a_request_exceeds_by_its_own_excess_only() -> None:
    """The first uses 200 of 100. What comes while it runs is bound by its reservation, what comes
    after by all that it used."""
    made = MadeUp()
    made.ran(0, 1_000, output=190, maximum=None)
    made.ran(10, 1_000, prompt=40, output=40, maximum=80)
    assert tokens(made, 100) == []
    made.ran(1_000 + SETTLED_WITHIN_MS, 4_000, prompt=1, output=1)
    assert tokens(made, 100) == []
    made.ran(1_001 + SETTLED_WITHIN_MS, 4_000, prompt=1, output=1)
    assert tokens(made, 100)


def test_with_a_maximum_nothing_is_excused() -> None:
    """Its reservation was never less than what it uses, also while it runs."""
    made = MadeUp()
    made.ran(0, 1_000, output=190, maximum=190)
    assert tokens(made, 199)


def test_without_a_maximum_what_it_reserves_at_least_counts() -> None:
    """Prompt and one token each: ten prompts of 10 do not fit 100."""
    made = MadeUp()
    for _ in range(10):
        made.ran(0, 1_000, output=5, maximum=None)
    assert tokens(made, 109)
    assert not tokens(made, 110)


@pytest.mark.parametrize(("limit", "held"), [(2, False), (3, True)])
def test_requests_of_a_minute(limit: int, *, held: bool) -> None:
    """R21: three in a minute; and what no engine was asked is given back."""
    made = MadeUp()
    for at_ms in (5, 10, 20, 59_000):
        made.ran(at_ms, at_ms + 1)
    made.spans.pop()
    assert (check_requests(made.history(requests=fixed(limit))) == []) is held
