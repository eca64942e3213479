"""REC-3 on made-up counters and ledgers."""

from dataclasses import replace
from uuid import UUID

import pytest

from billing.domain.reconciliation.engines import Meanwhile, Sample, check_engines
from billing.domain.reconciliation.findings import Verdict
from billing.domain.reconciliation.ledgers import Account, Fate, Ran, check_ledger

ONE, TWO, THREE = (UUID(int=n) for n in (1, 2, 3))
NOBODY = Meanwhile(0, 0)
NOW_MS = 200_000


def ran(request: UUID, ended_ms: int, output: int = 20, source: str = "engine_final") -> Ran:
    return Ran(request, 0, 1, "w", ended_ms - 500, ended_ms, 10, output, source)


def sample(at_ms: int, prompt: int, output: int, life: int = 1) -> Sample:
    return Sample("w", life, at_ms, at_ms, prompt, output)


def found(verdict: Verdict) -> list[tuple[UUID | None, int]]:
    return [(finding.request_id, finding.size) for finding in verdict.findings]


def term(verdict: Verdict, name: str) -> int:
    return {each.name: each.size for each in verdict.terms}[name]


SAMPLES = [sample(0, 100, 200), sample(50_000, 110, 220), sample(100_000, 120, 240)]
ATTEMPTS = [ran(ONE, 10_000), ran(TWO, 60_000)]


def test_counters_rise_by_what_ended() -> None:
    verdict = check_engines(SAMPLES, ATTEMPTS, NOBODY)
    assert verdict.ok
    assert (term(verdict, "counted"), term(verdict, "recorded")) == (60, 60)


@pytest.mark.parametrize("by", [-7, 9])
def test_what_differs_is_found_with_its_size(by: int) -> None:
    """More is recorded than was counted, or less."""
    wrong = [*ATTEMPTS[:1], ran(TWO, 60_000, 20 + by)]
    assert found(check_engines(SAMPLES, wrong, NOBODY)) == [(None, abs(by))]


def test_less_is_explained_by_lower_bounds_and_by_what_has_no_attempt() -> None:
    """More never is."""
    low = [*ATTEMPTS[:1], ran(TWO, 60_000, 15, "counted")]
    verdict = check_engines(SAMPLES, low, NOBODY)
    assert verdict.ok
    assert term(verdict, "lower_bound") == 5
    assert check_engines(SAMPLES, ATTEMPTS[:1], Meanwhile(1, 0)).ok
    assert check_engines(SAMPLES, ATTEMPTS[:1], Meanwhile(0, 1)).ok
    assert check_engines(SAMPLES, ATTEMPTS[:1], Meanwhile(0, 0, is_known=False)).ok
    high = [*ATTEMPTS[:1], ran(TWO, 60_000, 25, "counted")]
    assert found(check_engines(SAMPLES, high, Meanwhile(1, 1))) == [(None, 5)]


def test_what_ends_at_a_sample_is_at_the_edge() -> None:
    """On either side of it. It excuses nothing before the quiet sample that comes before it."""
    pair = [sample(0, 100, 200), sample(100_000, 120, 240)]
    for counted in (pair, [pair[0], sample(100_000, 110, 220)]):
        verdict = check_engines(counted, [ran(ONE, 10_000), ran(TWO, 99_500)], NOBODY)
        assert verdict.ok
        assert term(verdict, "at_the_edge") == 30
    quiet = [pair[0], sample(90_000, 110, 220), sample(100_000, 120, 240)]
    verdict = check_engines(quiet, [ran(ONE, 10_000), ran(TWO, 99_500)], NOBODY)
    assert verdict.ok
    assert (term(verdict, "recorded"), term(verdict, "at_the_edge")) == (30, 30)
    early = [pair[0], sample(90_000, 120, 240), pair[1]]
    verdict = check_engines(early, [ran(ONE, 10_000), ran(TWO, 99_500)], NOBODY)
    assert found(verdict) == [(None, 10), (None, 20)]


def slow(started_ms: int, ended_ms: int) -> Ran:
    """An attempt of TWO whose client read slowly: its engine ended at any time in between."""
    return replace(ran(TWO, ended_ms), started_at_ms=started_ms)


def busy_quarter(
    *, lost_at_ms: int, pause_ms: tuple[int, int] | None = None
) -> tuple[list[Sample], list[Ran]]:
    """A quarter of an hour in which four ran at any time but in a pause, and a worker that counted
    50 000 tokens at once that nobody recorded."""
    times = [(at, at + 4_000) for at in range(-1_000, 905_000, 1_000)]
    first, last = pause_ms or (-1, -1)
    ran_there = [
        replace(ran(ONE, ended), started_at_ms=started)
        for started, ended in times
        if ended <= first or started >= last
    ]
    samples = []
    for at in range(0, 900_000, 5_000):
        count = sum(each.ended_at_ms <= at for each in ran_there)
        lost = 50_000 if at >= lost_at_ms else 0
        samples.append(sample(at, 10 * count, 20 * count + lost))
    return samples, ran_there


@pytest.mark.parametrize("lost_at_ms", [180_000, 430_000, 700_000])
@pytest.mark.parametrize("pause_ms", [None, (420_000, 424_000), (420_000, 440_000)])
def test_a_pause_hides_nothing_before_it_or_after_it(
    lost_at_ms: int, pause_ms: tuple[int, int] | None
) -> None:
    """What a busy worker counted past the records is found wherever it lies, less at most what was
    open at an end of the period; and all of it is compared."""
    samples, attempts = busy_quarter(lost_at_ms=lost_at_ms, pause_ms=pause_ms)
    verdict = check_engines(samples, attempts, NOBODY)
    (finding,) = verdict.findings
    assert 50_000 - 12 * 20 <= finding.size <= 50_000
    first, last = samples[0], samples[-1]
    rose = last.prompt_tokens - first.prompt_tokens + last.output_tokens - first.output_tokens
    assert term(verdict, "counted") == rose
    samples, attempts = busy_quarter(lost_at_ms=900_000, pause_ms=pause_ms)
    assert check_engines(samples, attempts, NOBODY).ok


def test_a_lower_bound_explains_only_its_own_stretch() -> None:
    """One client that left in the first minute of a quarter excuses nothing after its pause."""
    for lost_at_ms, is_found in ((180_000, False), (700_000, True)):
        samples, attempts = busy_quarter(lost_at_ms=lost_at_ms, pause_ms=(420_000, 440_000))
        attempts[40] = replace(attempts[40], output_tokens=19, usage_source="counted")
        verdict = check_engines(samples, attempts, NOBODY)
        assert bool(verdict.findings) is is_found
        assert (term(verdict, "lower_bound") > 49_000) is not is_found


def test_what_was_broken_off_may_be_counted_seconds_later() -> None:
    """Its gateway has recorded it as ended before the last sample, and its engine counts after."""
    broken_off = replace(ran(ONE, 95_500), output_tokens=0, usage_source="counted")
    uncounted = [sample(0, 100, 200), sample(100_000, 100, 200)]
    assert check_engines(uncounted, [broken_off], NOBODY).ok
    earlier = replace(ran(ONE, 85_500), output_tokens=0, usage_source="counted")
    assert found(check_engines(uncounted, [earlier], NOBODY)) == [(None, 10)]


@pytest.mark.parametrize("counted", [100, 110])
def test_what_is_open_at_a_sample_is_at_the_edge(counted: int) -> None:
    """The engine counts at its end and the gateway sees that later: whether a sample has it nobody
    knows, at the beginning of a period or at its end."""
    before = [sample(10_000, counted, 2 * counted), sample(100_000, 110, 220)]
    verdict = check_engines(before, [slow(4_000, 40_000)], NOBODY)
    assert verdict.ok
    assert term(verdict, "at_the_edge") == 30
    after = [sample(10_000, 100, 200), sample(100_000, counted, 2 * counted)]
    verdict = check_engines(after, [slow(95_000, 150_000)], NOBODY)
    assert verdict.ok
    assert term(verdict, "at_the_edge") == 30


def test_what_is_open_when_a_worker_dies_is_of_neither_life() -> None:
    """Its gateway sees that only in the next one, which has not counted it."""
    samples = [*SAMPLES[:2], sample(80_000, 0, 0, life=2), sample(120_000, 0, 0, life=2)]
    verdict = check_engines(samples, [ran(ONE, 10_000), slow(49_000, 85_000)], NOBODY)
    assert verdict.ok
    assert term(verdict, "unwitnessed") == 0


def test_each_life_counts_from_its_own_start() -> None:
    """What ends between the last sample of one and the first of the next nobody has witnessed."""
    samples = [*SAMPLES[:2], sample(80_000, 3, 4, life=2), sample(120_000, 13, 24, life=2)]
    attempts = [ran(ONE, 10_000), ran(TWO, 70_000), ran(THREE, 100_000)]
    verdict = check_engines(samples, attempts, NOBODY)
    assert verdict.ok
    assert term(verdict, "unwitnessed") == 30
    assert term(verdict, "lives") == 2


def account(each: Ran, **changes: int) -> Account:
    known = Account(
        each.request_id, 0, 1, each.prompt_tokens, each.output_tokens, each.started_at_ms,
        each.ended_at_ms,
    )  # fmt: skip
    return replace(known, **changes)  # type: ignore[arg-type]


def test_a_ledger_names_the_request() -> None:
    """A count that differs, a sequence that nobody recorded, a record that nobody ran."""
    accounts = [account(ATTEMPTS[0], output_tokens=23), account(ran(THREE, 70_000))]
    verdict = check_ledger(accounts, ATTEMPTS, {}, since_ms=0, until_ms=NOW_MS)
    assert found(verdict) == [(ONE, 3), (THREE, 30), (TWO, 30)]
    assert check_ledger(
        [account(each) for each in ATTEMPTS], ATTEMPTS, {}, since_ms=0, until_ms=NOW_MS
    ).ok


def test_a_ledger_explains_lower_bounds_and_the_lost() -> None:
    """What began before a ledger did it need not know."""
    low = ran(ONE, 10_000, 5, "counted")
    accounts = [account(low, output_tokens=20), account(ran(TWO, 20_000))]
    verdict = check_ledger(accounts, [low], {TWO: Fate.GATEWAY_LOST}, since_ms=0, until_ms=NOW_MS)
    assert verdict.ok
    assert (term(verdict, "lower_bound"), term(verdict, "gateway_lost")) == (15, 30)
    high = [account(low, output_tokens=4)]
    assert found(check_ledger(high, [low], {}, since_ms=0, until_ms=NOW_MS)) == [(ONE, 1)]
    before = check_ledger([account(ATTEMPTS[0])], ATTEMPTS, {}, since_ms=60_000, until_ms=NOW_MS)
    assert before.ok
    meanwhile = check_ledger([account(ATTEMPTS[0])], ATTEMPTS, {}, since_ms=0, until_ms=50_000)
    assert meanwhile.ok
