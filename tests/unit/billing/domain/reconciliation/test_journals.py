"""REC-1 on made-up books: what is lacking is found with its size, what is explained is not."""

from dataclasses import replace
from uuid import UUID

import pytest

from billing.domain.reconciliation.findings import Check
from billing.domain.reconciliation.journals import (
    Boot,
    GatewayJournal,
    Letter,
    Lost,
    NumberGap,
    Tail,
    check_journals,
    tail_of,
)

WHOLE = Boot(boot=7, seq=20, admitted=10, ended=10, rows=10, last_row_seq=20, durable_seq=20)
REQUEST = UUID(int=5)


def of(boot: Boot, **changes: object) -> GatewayJournal:
    return replace(GatewayJournal(gateway_id="gw-1", boots=[boot]), **changes)  # type: ignore[arg-type]


def sizes(journal: GatewayJournal) -> list[tuple[str, int]]:
    return [(each.subject, each.size) for each in check_journals([journal]).findings]


def test_a_whole_journal_has_no_findings() -> None:
    """Also while a live gateway is ahead, and where rows were not counted."""
    assert check_journals([of(WHOLE)]).ok
    ahead = check_journals([of(replace(WHOLE, durable_seq=29))])
    assert ahead.ok
    assert {term.name: term.size for term in ahead.terms}["not_shipped_yet"] == 9
    assert check_journals([of(replace(WHOLE, rows=None))]).ok


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({"rows": 7}, 3),
        ({"rows": 7, "letters": 1}, 2),
        ({"rows": 7, "letters": 1, "late": 1}, 1),
        ({"rows": 7, "resolved": 2}, 1),
        ({"rows": 11}, 1),
        ({"last_row_seq": 24}, 4),
    ],
)
def test_ends_and_rows_are_as_many(changes: dict[str, int], size: int) -> None:
    """But for letters and for what came too late."""
    assert sizes(of(replace(WHOLE, **changes))) == [("gw-1/7", size)]


def test_a_row_that_came_by_another_way_hides_no_end_without_one() -> None:
    """Only what is known to have both is accounted for."""
    lacking = replace(WHOLE, rows=7)
    assert sizes(of(lacking, without_place=5, told_by_others=5)) == [("gw-1/7", 3)]
    assert check_journals([of(replace(lacking, late=3), without_place=3)]).ok


def test_ends_of_rows_that_an_older_release_sent_are_not_lacking() -> None:
    """As many as there are such rows; each explains one, whatever its boot."""
    boots = [replace(WHOLE, rows=8), replace(WHOLE, boot=8, rows=7)]
    journal = of(WHOLE, boots=boots, without_place=4, of_older=4)
    assert sizes(journal) == [("gw-1/8", 1)]
    sizes_of = {term.name: term.size for term in check_journals([journal]).terms}
    assert sizes_of["sent_by_older"] == 4
    assert tail_of(replace(journal, boots=[replace(boots[0], durable_seq=28)])) == Tail(8, 3)


def test_a_tail_is_told_apart_into_requests() -> None:
    """Of 9 numbers after which 1 request more is open, 5 are admissions and 4 ends."""
    boot = replace(WHOLE, admitted=12, ended=8, durable_seq=29, open_count=5)
    assert tail_of(of(boot)) == Tail(9, 4 + 5)
    assert tail_of(of(WHOLE)).records == 0


def test_what_an_earlier_boot_left_open_is_ended_by_the_next() -> None:
    """A hundred that were open when it died are ends of the next one: of the next 100 numbers,
    which are lost, half are admissions. So where two boots were never shipped."""
    died = Boot(boot=7, seq=200, admitted=150, ended=50, durable_seq=200, open_count=100)
    after = Boot(boot=8, seq=100, ended=100, durable_seq=200)
    for boots in ([died, after], [after, died]):
        assert tail_of(of(died, boots=boots)) == Tail(100, 50)
    unshipped = [replace(died, durable_seq=210, open_count=102), Boot(boot=8, durable_seq=104)]
    assert tail_of(of(died, boots=unshipped)) == Tail(114, 4 + (104 + 102) // 2)


def test_an_end_that_came_by_another_way_is_open_in_no_tail() -> None:
    """Its journal has the admission alone."""
    boot = replace(WHOLE, admitted=12, ended=8, durable_seq=28)
    assert tail_of(of(boot)) == Tail(8, 6)
    assert tail_of(of(boot, without_place=4)) == Tail(8, 4)


@pytest.mark.parametrize(("told", "lost"), [(9, 0), (10, 0), (6, 3), (0, 9)])
def test_what_a_gone_gateway_never_shipped_is_lost_but_for_what_others_told(
    told: int, lost: int
) -> None:
    boot = replace(WHOLE, admitted=12, ended=8, rows=8, durable_seq=29, open_count=5)
    found = sizes(of(boot, is_gone=True, told_by_others=told))
    assert found == ([("gw-1", lost)] if lost else [])


def test_what_was_lost_before_the_period_is_a_term() -> None:
    """It was found when it was lost."""
    boot = replace(WHOLE, admitted=12, ended=8, rows=8, durable_seq=29, open_count=5)
    verdict = check_journals([of(boot, is_gone=True, is_older=True)])
    assert verdict.ok
    sizes_of = {term.name: term.size for term in verdict.terms}
    assert (sizes_of["lost_before"], sizes_of["not_shipped_yet"]) == (9, 0)


def test_gaps_letters_and_lost_requests_are_named() -> None:
    """The request where it is known, the size in tokens where that is."""
    verdict = check_journals(
        [],
        gaps=[NumberGap("gw-1", 7, 3, 5)],
        letters=[
            Letter(1, "gw-1", "7:4", REQUEST, "23514 a_check", 32),
            Letter(2, "gw-1", "7:6", None, "unreadable", None),
        ],
        lost=[Lost(REQUEST, "gw-1", 44, "its journal")],
    )
    assert {finding.check for finding in verdict.findings} == {Check.JOURNALS}
    assert [(f.request_id, f.size, f.unit) for f in verdict.findings] == [
        (None, 3, "journal records"),
        (REQUEST, 32, "tokens"),
        (None, 1, "usage records"),
        (REQUEST, 44, "tokens"),
    ]
