"""The storm's count of sequences fails where one too many ran, and only there."""

from dataclasses import replace

from storm.check_sequences import OUTLIVED_MS_MAX, check_sequences, peak, unaccounted
from storm.history import LOST, Change, InForce
from storm.made_up import ALL, MODEL, TENANT, MadeUp, edited, fixed


def test_one_sequence_too_many_at_one_instant() -> None:
    """C05, INV-2: two ran together for a millisecond where one was allowed."""
    made = MadeUp()
    made.ran(100, 200)
    made.ran(199, 300)
    (finding,) = check_sequences(made.history(sequences=fixed(1)))
    assert str(finding).startswith("sequences acme (tenant): 2 ran at 199, 1 allowed")
    assert check_sequences(made.history(sequences=fixed(2))) == []
    assert peak(made.history(), ALL) == 2


def test_one_after_the_other_is_one() -> None:
    """The next may start in the millisecond in which the one before ended."""
    made = MadeUp()
    for at_ms in (100, 200, 300):
        made.ran(at_ms, at_ms + 100)
    assert check_sequences(made.history(sequences=fixed(1))) == []
    assert peak(made.history(), ALL) == 1


def test_choices_are_sequences() -> None:
    """C10: a request of three choices is three."""
    made = MadeUp()
    made.ran(100, 200, sequences=3)
    assert check_sequences(made.history(sequences=fixed(2)))
    assert not check_sequences(made.history(sequences=fixed(3)))


def test_each_scope_is_counted_by_itself() -> None:
    """A key's and a model's limit below the tenant's."""
    made = MadeUp()
    made.ran(100, 200, key="key-1")
    made.ran(100, 200, key="key-2")
    one = InForce((Change(0, 0, 1),))
    cases = {
        "tenant": False,
        f"model:{MODEL}": False,
        "key:key-1": True,
        f"key:key-2/model:{MODEL}": True,
    }
    for scope, allowed in cases.items():
        found = check_sequences(made.history(sequences={(TENANT, scope): one}))
        assert (not found) == allowed, scope
    assert not check_sequences(made.history(sequences={("globex", "tenant"): one}))


def test_a_lowered_limit_binds_who_comes_after() -> None:
    """Who ran before may end; who was certainly admitted after it was in force may not be one of
    too many, and who may have been admitted before is given the benefit."""
    lowered = edited(3, 2, sent_ms=1_000, everywhere_ms=1_200)
    made = MadeUp()
    for at_ms in (900, 950, 1_150):
        made.ran(at_ms, 2_000)
    assert not check_sequences(made.history(sequences=lowered))
    made.ran(1_201, 2_000)
    assert check_sequences(made.history(sequences=lowered))


def test_a_raised_limit_holds_from_when_it_was_sent() -> None:
    """Not from before."""
    raised = edited(1, 2, sent_ms=1_000, everywhere_ms=1_200)
    early, late = MadeUp(), MadeUp()
    early.ran(100, 2_000)
    early.ran(999, 2_000)
    late.ran(100, 2_000)
    late.ran(1_000, 2_000)
    assert check_sequences(early.history(sequences=raised))
    assert not check_sequences(late.history(sequences=raised))


def test_who_is_admitted_late_is_bound_by_the_limit_of_then() -> None:
    """A request that reached its gateway under the old limit and its engine under the new one."""
    raised = edited(1, 2, sent_ms=1_000, everywhere_ms=1_200)
    made = MadeUp()
    made.ran(100, 2_000)
    made.ran(990, 2_000, admitted_within_ms=20)
    assert not check_sequences(made.history(sequences=raised))


def test_what_a_killed_gateway_left_is_forgiven_nothing() -> None:
    """C03, R10: it counts as long as it runs, and running on is a finding of its own."""
    made = MadeUp()
    made.ran(100, 1_050, outcome=LOST)
    assert not check_sequences(made.history(sequences=fixed(1), kills=[1_000]))
    made.spans[0] = replace(made.spans[0], ended_ms=1_001 + OUTLIVED_MS_MAX)
    (outlived,) = check_sequences(made.history(sequences=fixed(1), kills=[1_000]))
    assert outlived.rule == "outlived"
    made.ran(3_000, 3_500)
    rules = [each.rule for each in check_sequences(made.history(sequences=fixed(1), kills=[1_000]))]
    assert rules == ["sequences", "outlived"]


def test_a_sequence_that_never_ran_counts_for_nothing() -> None:
    """It was aborted in the engine's queue."""
    made = MadeUp()
    made.ran(100, 200)
    made.ran(100, 200)
    made.spans[0] = replace(made.spans[0], started_ms=None)
    assert not check_sequences(made.history(sequences=fixed(1)))


def test_a_sequence_of_nobody_is_seen() -> None:
    """An engine ran what no record speaks of."""
    made = MadeUp()
    made.ran(100, 200)
    stranger = replace(made.spans[0], request_id="f" * 32)
    made.spans.append(stranger)
    assert unaccounted(made.history()) == [stranger]
