"""A run of a journal is encoded as its rows are one by one, to the byte, or refused where one of
them is."""

from uuid import UUID

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from usage_examples import a_record, an_admission

from billing.domain.usage_record import Outcome, UsageAttempt, UsageRecord, UsageSource
from billing.postgres.shipments import UNFIT
from billing.postgres.usage_direct import Encoded, encode
from billing.postgres.usage_run import Run, encode_run
from gateway.adapters.journal.entries import EndedEntry

COUNTS = st.sampled_from([0, 1, 900, 2**31 - 1])
MAYBE_COUNTS = st.none() | COUNTS
TIMES = st.sampled_from([1, 946_684_800_000, 1_796_057_886_372, 4_102_444_800_000])
MONEY = st.none() | st.sampled_from([-(2**63), -1, 0, 7, 2**63 - 1])
WORDS = st.sampled_from(["", "a", "é\t\\N", "x" * 300])
MAYBE_WORDS = st.none() | WORDS
UNFIT_VALUES: dict[str, object] = {
    "prompt_tokens": 2**31, "queue_ms": "soon", "ttft_ms": -(2**31) - 1, "cost_pico": 2**63,
    "admitted_at_ms": 2**63, "model": "\ud800", "request_id": "none",
}  # fmt: skip

ATTEMPTS = st.builds(
    UsageAttempt,
    attempt=st.integers(1, 3),
    choice=st.integers(0, 2),
    worker_id=WORDS,
    provider=WORDS,
    started_at_ms=TIMES,
    ended_at_ms=TIMES,
    outcome=st.sampled_from(Outcome),
    prompt_tokens=COUNTS,
    output_tokens=COUNTS,
    provider_request_id=MAYBE_WORDS,
    provider_cost_pico=MONEY,
    usage_source=st.none() | st.sampled_from(UsageSource),
    cached_prompt_tokens=MAYBE_COUNTS,
)
RECORDS = st.builds(
    UsageRecord,
    request_id=st.integers(0, 5).map(lambda number: UUID(int=number << 120 | 255 - number)),
    tenant_id=WORDS,
    api_key_id=WORDS,
    model=WORDS,
    request_class=WORDS,
    admitted_at_ms=TIMES,
    ended_at_ms=TIMES,
    first_token_at_ms=st.none() | TIMES,
    prompt_tokens=COUNTS,
    cached_prompt_tokens=COUNTS,
    output_tokens=COUNTS,
    reasoning_tokens=COUNTS,
    sequences=COUNTS,
    queue_ms=COUNTS,
    ttft_ms=MAYBE_COUNTS,
    tpot_us=MAYBE_COUNTS,
    itl_max_us=MAYBE_COUNTS,
    outcome=st.sampled_from(Outcome),
    final=st.booleans(),
    finish_reason=MAYBE_WORDS,
    usage_source=st.sampled_from(UsageSource),
    usage_flags=st.lists(WORDS, max_size=2).map(tuple),
    provider=WORDS,
    worker_id=MAYBE_WORDS,
    billable=st.booleans(),
    billing_policy=COUNTS,
    price_id=MONEY,
    cost_pico=MONEY,
    list_cost_pico=MONEY,
    currency=MAYBE_WORDS,
    attempts=st.lists(ATTEMPTS, max_size=3).map(tuple),
)


def run_of(records: list[UsageRecord], first_seq: int = 1) -> Run:
    ended = [EndedEntry(seq, record) for seq, record in enumerate(records, first_seq)]
    return Run(ended, "gw-1", 1_796_057_886_372)


def a_usual_one() -> UsageRecord:
    """Nothing is missing: the row that is packed in one piece."""
    record = a_record(
        an_admission(), price_id=7, cost_pico=5, list_cost_pico=5, currency="EUR", attempts=()
    )
    attempt = UsageAttempt(
        attempt=1,
        worker_id="w",
        started_at_ms=record.admitted_at_ms,
        ended_at_ms=record.ended_at_ms,
        outcome=Outcome.COMPLETED,
        usage_source=UsageSource.ENGINE_FINAL,
        cached_prompt_tokens=4,
    )
    return msgspec.structs.replace(record, attempts=(attempt,))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(RECORDS, max_size=5), st.integers(0, 3), st.randoms(use_true_random=False))
def test_to_the_byte(records: list[UsageRecord], usual: int, random: object) -> None:
    """Whatever lacks, is tried twice, or is told twice."""
    records = records + [a_usual_one() for _ in range(usual)]
    random.shuffle(records)  # type: ignore[attr-defined]
    run = run_of(records)
    assert encode_run(run) == encode(list(run))


@settings(deadline=None)
@given(st.permutations([a_usual_one() for _ in range(6)]), st.integers(1, 2**62))
def test_usual_ones_in_any_order(records: list[UsageRecord], first_seq: int) -> None:
    """They are written in the order of all writers, whenever they ended."""
    run = run_of(records, first_seq)
    assert encode_run(run) == encode(list(run))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(RECORDS, st.sampled_from(sorted(UNFIT_VALUES)))
def test_what_no_column_holds_is_refused_by_both(record: UsageRecord, name: str) -> None:
    """So that it is found out which of the rows it is."""
    changed = msgspec.structs.replace(record, **{name: UNFIT_VALUES[name]})
    run = run_of([a_usual_one(), changed])
    assert _encoded(run) is None
    assert _encoded(list(run)) is None


def test_rows_are_there_when_asked_for() -> None:
    """In their places, alone and in parts."""
    records = [a_usual_one() for _ in range(5)]
    run = run_of(records, 11)
    assert [row.record for row in run] == records
    assert [row.seq for row in run[1:3]] == [12, 13]
    assert (run[4].seq, run[4].gateway_id, run[4].boot) == (15, "gw-1", run.boot)
    assert len(run) == 5


def _encoded(rows: object) -> Encoded | None:
    try:
        return encode_run(rows) if isinstance(rows, Run) else encode(rows)  # type: ignore[arg-type]
    except UNFIT:
        return None
