"""The judge of the runs of metering finds each thing that must not be, and nothing else."""

from collections import Counter
from dataclasses import replace

import pytest
from metering_run.accounts import Accounts, Asked, Disturbance, Ran, Row, Try
from metering_run.judge import judge

WORKER = "worker-0"
ID = "a" * 32
PROMPT, OUTPUT = 9, 20


def a_row(**changes: object) -> Row:
    usual = Row(
        request_id=ID, outcome="completed", source="engine_final", prompt=PROMPT, output=OUTPUT
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


def a_try(**changes: object) -> Try:
    usual = Try(
        request_id=ID,
        choice=0,
        attempt=1,
        worker=WORKER,
        started_ms=10_000,
        ended_ms=11_000,
        outcome="completed",
        source="engine_final",
        prompt=PROMPT,
        output=OUTPUT,
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


def a_run(**changes: object) -> Ran:
    return replace(Ran(ID, 0, 1, WORKER, PROMPT, OUTPUT), **changes)  # type: ignore[arg-type]


RIGHT = Accounts(
    admitted=Counter([ID]),
    ended={ID: [a_row()]},
    rows=[a_row()],
    tries=[a_try()],
    ran=[a_run()],
    asked=[Asked(200, ID, whole=True, usage=(PROMPT, OUTPUT))],
)


def rules(accounts: Accounts) -> list[str]:
    """Which rules were broken."""
    return sorted({finding.rule for finding in judge(accounts).findings})


def said(accounts: Accounts) -> dict[str, tuple[int, int]]:
    """The differences that have a reason, where nothing is wrong."""
    verdict = judge(accounts)
    assert verdict.findings == []
    return {name: (term.count, term.tokens) for name, term in verdict.terms.items()}


def ended(accounts: Accounts, row: Row, **changes: object) -> Accounts:
    """With this row, which its journal says too."""
    return replace(accounts, rows=[row], ended={row.request_id: [row]}, **changes)  # type: ignore[arg-type]


def test_books_that_agree_are_right() -> None:
    """One row, exact, and nothing to explain."""
    assert said(RIGHT) == {}
    assert judge(RIGHT).exact == 1


def test_one_row_missing_is_found() -> None:
    """By its journal, by its engine and by its client."""
    found = judge(replace(RIGHT, rows=[]))
    assert {(each.rule, each.subject) for each in found.findings} == {
        ("missing", ID),
        ("unrecorded", ID),
    }
    assert sum(each.rule == "missing" for each in found.findings) == 2


def test_one_row_double_is_found() -> None:
    """INV-5."""
    assert rules(replace(RIGHT, rows=[a_row(), a_row()])) == ["double"]


@pytest.mark.parametrize("by", [1, -1])
def test_one_token_too_many_or_too_few_is_found(by: int) -> None:
    """In the row against all others; in row, journal and client against the engine; in the prompt
    alone; in the attempt alone."""
    wrong = a_row(output=OUTPUT + by)
    assert rules(replace(RIGHT, rows=[wrong])) == ["altered", "tokens", "told", "unexplained"]
    asked = [Asked(200, ID, whole=True, usage=(PROMPT, OUTPUT + by))]
    together = ended(RIGHT, wrong, tries=[a_try(output=OUTPUT + by)], asked=asked)
    assert rules(together) == ["tokens"]
    assert rules(ended(RIGHT, a_row(prompt=PROMPT + by), asked=[])) == ["tokens"]
    assert "tokens" in rules(replace(RIGHT, tries=[a_try(output=OUTPUT + by)]))


def test_what_its_journal_did_not_say_is_found() -> None:
    """An outcome that was changed; a row that nobody admitted; one of no journal and no reaper."""
    assert rules(replace(RIGHT, rows=[a_row(outcome="client_cancelled")], asked=[])) == ["altered"]
    nobody = replace(RIGHT, admitted=Counter(), ended={})
    assert rules(nobody) == ["invented"]
    placeless = replace(RIGHT, ended={}, rows=[a_row(by_journal=False)])
    assert rules(placeless) == ["placeless"]
    direct = replace(placeless, rows=[a_row(by_journal=False, ended_ms=11_000)])
    assert rules(direct) == ["placeless"]
    full = Disturbance("disk", "gateway-0", 10_500, 20_000)
    assert said(replace(direct, disturbances=[full])) == {"sent_directly": (1, 0)}


def test_what_stays_provisional_is_found_where_its_journal_is_there() -> None:
    """Only a reaper's row may wait, and only while its gateway's own account is not known."""
    reaped = a_row(by_journal=False, final=False, flags=("reaped",))
    assert said(replace(RIGHT, rows=[reaped], ended={})) == {}
    assert rules(replace(RIGHT, rows=[reaped])) == ["provisional"]
    assert rules(replace(RIGHT, rows=[a_row(final=False)], ended={})) == ["provisional"]


def test_a_second_admission_and_dead_letters_and_lost_numbers_are_found() -> None:
    """None of them is any request's own row."""
    assert rules(replace(RIGHT, admitted=Counter([ID, ID]))) == ["admitted"]
    assert rules(replace(RIGHT, dead_letters=1)) == ["dead_letters"]
    assert rules(replace(RIGHT, missing=1)) == ["numbers"]


def test_an_answer_that_is_no_completed_row_is_found() -> None:
    """A whole answer is `completed` with the counts that the client was told; a refusal that
    promises that nothing was admitted has no row."""
    lost = ended(RIGHT, a_row(outcome="worker_failed"), tries=[a_try(outcome="worker_failed")])
    assert rules(lost) == ["outcome"]
    told = [Asked(200, ID, whole=True, usage=(PROMPT, OUTPUT + 1))]
    assert rules(replace(RIGHT, asked=told)) == ["told"]
    refused = [Asked(503, ID, error="metering_unavailable")]
    assert rules(replace(RIGHT, asked=refused)) == ["refused"]
    assert rules(replace(RIGHT, asked=[Asked(200, "b" * 32)])) == ["missing"]


def test_a_lower_bound_has_a_reason_or_is_found() -> None:
    """A count that is not the engine's last word needs an end that promises none, or a worker to
    which something was done; above its engine it never is."""
    counted = {"source": "counted", "output": OUTPUT - 4}
    failed = {**counted, "outcome": "worker_failed"}
    row, tried = a_row(**failed), a_try(**failed)
    bound = ended(RIGHT, row, tries=[tried], asked=[])
    assert said(bound) == {"lower_bound of worker_failed": (1, 4)}
    whole = ended(RIGHT, a_row(**counted), tries=[a_try(**counted)], asked=[])
    assert rules(whole) == ["unsaid"]
    elsewhere = Disturbance("cut", "worker-1", 10_500, 10_600)
    assert rules(replace(whole, disturbances=[elsewhere])) == ["unsaid"]
    before = Disturbance("cut", WORKER, 1_000, 2_000)
    assert rules(replace(whole, disturbances=[before])) == ["unsaid"]
    meanwhile = Disturbance("cut", WORKER, 10_500, 10_600)
    known = replace(whole, disturbances=[meanwhile])
    assert said(known) == {"lower_bound of completed": (1, 4)}
    above = {**failed, "output": OUTPUT + 1}
    assert rules(ended(RIGHT, a_row(**above), tries=[a_try(**above)], asked=[])) == ["over"]


def test_tokens_of_which_no_engine_knows_need_a_killed_engine() -> None:
    """A worker that was killed could not write down what it ran; one that was cut off could."""
    failed = {"source": "counted", "outcome": "worker_failed"}
    without = ended(RIGHT, a_row(**failed), tries=[a_try(**failed)], ran=[], asked=[])
    assert rules(without) == ["unwitnessed"]
    cut = Disturbance("cut", WORKER, 10_500, 10_600)
    assert rules(replace(without, disturbances=[cut])) == ["unwitnessed"]
    killed = replace(without, disturbances=[Disturbance("kill", WORKER, 10_500, 10_600)])
    assert said(killed) == {"engine_killed": (1, -OUTPUT)}
    exact = replace(RIGHT, ran=[], disturbances=killed.disturbances)
    assert rules(exact) == ["tokens"]


def test_what_an_engine_ran_for_nobody_is_found() -> None:
    """A sequence of a request that has no row, and one more attempt than its row has."""
    assert rules(replace(RIGHT, ran=[a_run(), a_run(request_id="b" * 32)])) == ["unrecorded"]
    assert rules(replace(RIGHT, ran=[a_run(), a_run(attempt=2)])) == ["unrecorded"]


def test_attempts_that_do_not_count_are_itemised() -> None:
    """The last of a choice counts, unless its place was taken back."""
    first = a_try(outcome="worker_failed", source="counted", output=3)
    again = a_try(attempt=2)
    twice = replace(RIGHT, tries=[first, again], ran=[a_run(output=5), a_run(attempt=2)])
    assert said(twice) == {"tried_elsewhere": (1, 5)}
    back = replace(twice, tries=[replace(first, outcome="taken_back", output=0), again])
    assert said(back) == {"taken_back": (1, 5)}
    assert judge(twice).exact == 1


def test_a_lost_request_is_a_lower_bound_too() -> None:
    """Of its attempts nothing is known; above what engines ran it never is."""
    lost = {"outcome": "gateway_lost", "source": "counted", "output": 12}
    accounts = ended(RIGHT, a_row(**lost), tries=[], asked=[])
    assert said(accounts) == {"gateway_lost": (1, OUTPUT - 12)}
    too_much = ended(RIGHT, a_row(**{**lost, "output": OUTPUT + 1}), tries=[], asked=[])
    assert rules(too_much) == ["over"]
    alone = replace(accounts, ran=[])
    assert rules(alone) == ["over"]
    gateway = Disturbance("kill", "gateway-0", 10_500, 10_600)
    assert rules(replace(alone, disturbances=[gateway])) == ["over"]
    engine = replace(gateway, target=WORKER)
    assert said(replace(alone, disturbances=[engine])) == {"engine_killed": (1, -12)}


def test_cached_tokens_are_exact_too() -> None:
    """They have a price of their own."""
    cached = ended(RIGHT, a_row(cached=4), ran=[a_run(cached=4)])
    assert rules(cached) == []
    assert rules(replace(cached, ran=[a_run(cached=3)])) == ["tokens"]
    assert rules(replace(cached, rows=[a_row(cached=3)])) == ["altered", "tokens"]
    untold = ended(cached, a_row(cached=0))
    assert rules(untold) == ["tokens"]
    fault = Disturbance("fault", WORKER, 10_500, 10_600)
    assert rules(replace(untold, disturbances=[fault])) == ["tokens"]
    says_so = replace(a_row(cached=0), flags=("cached_unknown",))
    untold = replace(ended(cached, says_so), disturbances=[fault])
    assert said(untold) == {"cached_not_told": (1, 0)}


def test_a_prompt_counts_once_for_its_choices_and_each_prompt_once() -> None:
    """Two choices of one prompt, and one of each of two prompts."""
    tries = [a_try(), a_try(choice=1)]
    ran = [a_run(), a_run(choice=1)]
    both = {"sequences": 2, "output": 2 * OUTPUT}
    once = ended(RIGHT, a_row(**both), tries=tries, ran=ran)
    two = Asked(200, ID, choices=2)
    assert rules(replace(once, asked=[two])) == []
    assert rules(replace(once, asked=[replace(two, choices=1)])) == ["tokens"]
    each = ended(once, a_row(**both, prompt=2 * PROMPT))
    assert rules(replace(each, asked=[replace(two, choices=1)])) == []
    assert rules(replace(each, asked=[two])) == ["tokens"]
    assert rules(replace(each, asked=[])) == []
