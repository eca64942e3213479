"""Who is gone, what is recorded in its place, and when nothing more is expected of it."""

import pytest
from usage_examples import a_record, an_admission

from billing.domain.policy import CURRENT_POLICY
from billing.domain.usage_record import Outcome, UsageSource
from gateway.domain.orphans import (
    FINAL_MS,
    Orphan,
    is_provisional_end,
    is_shipped,
    lost_record,
    may_be_forgotten,
    may_judge,
    needs_rating,
    orphans,
    provisional,
)
from gateway.domain.presence import GONE_MS, Heartbeat, Standing

NOW_MS = 1_800_000_000_000


def seen(ago_ms: int) -> Standing:
    """A gateway that was seen so long ago."""
    return Standing(NOW_MS - ago_ms, 0)


def test_gone_is_who_was_not_seen_for_a_minute() -> None:
    """To the millisecond, in order, with for how long; never the one that looks."""
    gateways = {
        "d": seen(GONE_MS),
        "c": seen(GONE_MS - 1),
        "b": seen(5 * GONE_MS),
        "a": seen(9 * GONE_MS),
    }
    found = orphans(gateways, own="a", now_ms=NOW_MS)
    assert found == [Orphan("b", gateways["b"], 5 * GONE_MS), Orphan("d", gateways["d"], GONE_MS)]
    assert orphans(gateways, own="", now_ms=NOW_MS, gone_after_ms=6 * GONE_MS)[0].gateway_id == "a"


@pytest.mark.parametrize(
    ("looked_ms", "judges"),
    [(None, False), (NOW_MS - 5_000, True), (NOW_MS - 15_000, True), (NOW_MS - 15_001, False),
     (NOW_MS, True), (NOW_MS + 1, False)],
)  # fmt: skip
def test_who_was_away_does_not_judge(looked_ms: int | None, judges: bool) -> None:
    """Nor whoever begins, nor where the store's clock went forward or back meanwhile."""
    assert may_judge(looked_ms=looked_ms, now_ms=NOW_MS, period_ms=5_000) is judges


def test_an_end_is_recorded_as_it_was() -> None:
    """All of it but that it is provisional, and flagged; its own flags stay."""
    record = a_record(usage_flags=("cut_short", "usage_fell"), cost_pico=7, currency="USD")
    row = provisional(record, has_ended=True)
    assert (row.final, row.usage_flags) == (False, ("cut_short", "reaped", "usage_fell"))
    assert (row.cost_pico, row.outcome, row.attempts) == (7, record.outcome, record.attempts)
    assert is_provisional_end(row)


def test_what_ran_is_lost_with_what_was_told_and_costs_nothing() -> None:
    """gateway_lost, the tokens told, a lower bound; nobody pays, and what it would have cost is to
    be rated."""
    admission = an_admission(currency="USD")
    record = lost_record(admission, now_ms=NOW_MS, prompt_tokens=12, output_tokens=7)
    assert (record.outcome, record.usage_source) == (Outcome.GATEWAY_LOST, UsageSource.COUNTED)
    assert (record.prompt_tokens, record.output_tokens) == (12, 7)
    assert (record.billable, record.billing_policy, record.cost_pico) == (False, CURRENT_POLICY, 0)
    assert (record.list_cost_pico, needs_rating(record)) == (None, True)
    assert (record.request_id, record.ended_at_ms) == (admission.request_id, NOW_MS)
    row = provisional(record, has_ended=False)
    assert (row.final, row.usage_flags) == (False, ("end_unknown", "reaped"))
    assert not is_provisional_end(row)


def test_of_what_nothing_was_told_nothing_is_claimed() -> None:
    """0 tokens, `estimated`, and 0 at any price; without a currency no cost at all."""
    record = lost_record(an_admission(currency="USD"), now_ms=NOW_MS)
    assert (record.prompt_tokens, record.output_tokens) == (0, 0)
    assert (record.usage_source, record.list_cost_pico) == (UsageSource.ESTIMATED, 0)
    assert not needs_rating(record)
    unrated = lost_record(an_admission(), now_ms=NOW_MS, output_tokens=3)
    assert (unrated.cost_pico, unrated.list_cost_pico, needs_rating(unrated)) == (None, None, False)


def test_shipped_is_what_is_durable_and_open_nowhere() -> None:
    """The watermark of its last boot is as far as the disk was, and all that was admitted ended; or
    a later boot, which ends what was open, is there too."""
    journal = Heartbeat(boot=3, durable_seq=10, open_count=1, shipped_seq=4)
    assert is_shipped(journal, {2: 50, 3: 10}, open_count=0)
    assert is_shipped(journal, {3: 11, 4: 2}, open_count=1)
    assert not is_shipped(journal, {3: 9}, open_count=0)
    assert not is_shipped(journal, {2: 50}, open_count=0)
    assert not is_shipped(journal, {2: 50, 3: 10}, open_count=1)
    assert not is_shipped(None, {}, open_count=0)


def test_nobody_is_forgotten_whose_rows_are_provisional() -> None:
    """However long it is gone; with final rows at once where all is shipped, else after a day."""
    journal = Heartbeat(boot=1, durable_seq=4, open_count=0, shipped_seq=0)

    def forgotten(gone_ms: int, shipped: int, provisional_rows: int = 0) -> bool:
        orphan = Orphan("a", Standing(NOW_MS - gone_ms, 0, journal), gone_ms)
        return may_be_forgotten(
            orphan,
            {1: shipped},
            open_count=0,
            provisional_rows=provisional_rows,
            final_after_ms=FINAL_MS,
        )

    assert forgotten(GONE_MS, 4)
    assert not forgotten(GONE_MS, 4, provisional_rows=1)
    assert not forgotten(FINAL_MS - 1, 3)
    assert forgotten(FINAL_MS, 3)
    assert not forgotten(2 * FINAL_MS, 3, provisional_rows=1)
