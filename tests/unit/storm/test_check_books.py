"""The storm's books fail where a record is missing, double, wrong, or something is still held."""

from dataclasses import replace

from storm.check_books import PROMPT_OVER, check_books, check_rest
from storm.history import LOST, Call, History, Rest
from storm.made_up import TENANT, MadeUp


def rules(history: History) -> list[str]:
    """What the books are found to break."""
    return [finding.rule for finding in check_books(history)]


def made_up() -> MadeUp:
    """Two requests in order."""
    made = MadeUp()
    made.ran(0, 100)
    made.ran(50, 150, sequences=2)
    return made


def test_books_in_order() -> None:
    """One record each, with the engine's counts."""
    assert check_books(made_up().history()) == []


def test_a_lost_record() -> None:
    """INV-5: an engine ran it, its client was answered, and nobody is to pay."""
    made = made_up()
    made.rows.pop()
    assert rules(made.history()) == ["missing", "missing"]


def test_a_double_record() -> None:
    """INV-5: a replay added one."""
    made = made_up()
    made.rows.append(made.rows[0])
    assert rules(made.history()) == ["double"]


def test_a_refusal_with_a_record() -> None:
    """INV-4: what was over its limit used something all the same."""
    made = made_up()
    made.calls[0] = replace(made.calls[0], status=429, whole=False)
    assert rules(made.history()) == ["refused"]


def test_counts_that_are_not_the_engines() -> None:
    """INV-6: output, prompt and sequences of what completed; never more than ran of the rest."""
    made = made_up()
    wrong = {"output_tokens": 19, "prompt_tokens": 11, "sequences": 2}
    for name, value in wrong.items():
        changed = replace(made.rows[0], **{name: value})  # type: ignore[arg-type] # three ints
        made.rows[0], before = changed, made.rows[0]
        assert rules(made.history()) == ["counts"], name
        made.rows[0] = before
    made.rows[0] = replace(made.rows[0], outcome="client_cancelled", output_tokens=21)
    made.calls[0] = replace(made.calls[0], whole=False)
    assert rules(made.history()) == ["counts"]


def test_an_answer_that_its_record_denies() -> None:
    """The client read it to the end."""
    made = made_up()
    made.rows[0] = replace(made.rows[0], outcome="client_cancelled")
    assert rules(made.history()) == ["counts"]


def test_only_a_kill_loses_requests() -> None:
    """gateway_lost needs a gateway that was killed after the request came."""
    made = MadeUp()
    made.ran(1_000, 1_100, outcome=LOST)
    assert rules(made.history(kills=[1_050])) == []
    assert rules(made.history(kills=[999])) == ["lost"]
    assert rules(made.history()) == ["lost"]


def test_a_client_that_left_unanswered_breaks_nothing() -> None:
    """Nobody told it an id."""
    made = made_up()
    made.calls.append(Call(TENANT, 0, 10, None, None, error="left"))
    assert check_books(made.history()) == []


def test_what_is_held_at_rest() -> None:
    """INV-1, C03: within one lease time, not after it."""
    made = made_up()
    held = Rest(zero_after_ms=None, left=("acme leases: 1",))
    (finding,) = check_rest(made.history(rest=held))
    assert "acme leases: 1" in finding.what
    assert check_rest(made.history(rest=Rest(10_000))) == []
    assert check_rest(made.history(rest=Rest(10_001)))


def test_a_window_that_keeps_reservations() -> None:
    """R10: at rest the store counts what ran: 30 and 50 tokens here, not what was reserved."""
    made = made_up()
    for counted, wrong in {80: False, 79: True, 81: True}.items():
        rest = Rest(0, window_tokens={TENANT: counted})
        assert bool(check_rest(made.history(rest=rest))) is wrong, counted


def test_a_window_keeps_what_a_lost_request_reserved() -> None:
    """Nobody knows what it used of it."""
    made = made_up()
    made.rows[1] = replace(made.rows[1], outcome=LOST)
    for counted, wrong in {29: True, 30: False, 400: False}.items():
        rest = Rest(0, window_tokens={TENANT: counted})
        assert bool(check_rest(made.history(rest=rest))) is wrong, counted


def test_a_window_keeps_what_a_kill_broke_off_between_admission_and_journal() -> None:
    """It has no record. Only where there was a kill then, and no more than it may have reserved."""
    made = made_up()
    made.calls.append(Call(TENANT, 90, 110, None, None, error="ServerDisconnectedError", maximum=4))
    at_most = 80 + 10 + PROMPT_OVER + 4
    for counted, kills, wrong in (
        (81, [100], False), (at_most, [100], False), (at_most + 1, [100], True),
        (81, [89], True), (81, [111], True), (79, [100], True),
    ):  # fmt: skip
        rest = Rest(0, window_tokens={TENANT: counted})
        assert bool(check_rest(made.history(kills=kills, rest=rest))) is wrong, counted
    made.calls[-1] = replace(made.calls[-1], error="left")
    rest = Rest(0, window_tokens={TENANT: 81})
    assert check_rest(made.history(kills=[100], rest=rest))


def test_a_month_that_is_not_what_its_records_cost() -> None:
    """B06: a reservation that stayed, or a settlement that was lost: 300 and 500 pico here."""
    for spent, wrong in {800: False, 799: True, 801: True}.items():
        rest = Rest(0, spent_pico={TENANT: spent})
        assert bool(check_rest(made_up().history(rest=rest))) is wrong, spent
