"""REC-2 on made-up books."""

from dataclasses import replace
from uuid import UUID

import pytest

from billing.domain.reconciliation.requests import Balance, Held, check_requests, fairest

EVEN = Balance(gateway_id="gw-1", admitted=12, ended=10, open_count=2)
GONE = replace(EVEN, open_count=None, is_gone=True)
ONE, TWO, THREE = (UUID(int=n) for n in (1, 2, 3))


def sizes(*balances: Balance) -> list[int]:
    verdict = check_requests(balances, leases=(), open_copies={}, known=frozenset())
    return [finding.size for finding in verdict.findings]


@pytest.mark.parametrize(
    ("balance", "size"),
    [
        (EVEN, 0),
        (replace(EVEN, open_count=None), 0),
        (replace(EVEN, open_count=0), 2),
        (replace(EVEN, open_count=3), 1),
        (replace(EVEN, open_count=0, without_place=2), 0),
        (replace(EVEN, open_count=3, missing=1), 0),
        (GONE, 2),
        (replace(GONE, without_place=2), 0),
        (replace(GONE, without_place=1), 1),
        (replace(EVEN, admitted=11, ended=11, illegible=1), 0),
        (replace(EVEN, admitted=11, ended=11), 2),
        (replace(EVEN, admitted=11, ended=11, open_count=3, illegible=1), 1),
        (replace(EVEN, open_count=0, illegible=1), 2),
    ],
)
def test_admitted_is_ended_and_live(balance: Balance, size: int) -> None:
    """What was told by another way explains an end, a lost number either, and an entry that nobody
    could read may be an admission that was taken for an end; who is gone has nothing that is live,
    and who was further on is not compared."""
    assert sizes(balance) == ([size] if size else [])


def test_of_several_looks_the_fairest_counts() -> None:
    """A request on its way differs once; what is wrong differs each time that it is compared."""
    off, more = replace(EVEN, open_count=3), replace(EVEN, open_count=4)
    further = replace(EVEN, open_count=None)
    assert fairest([off, EVEN]) == fairest([EVEN, off]) == EVEN
    assert fairest([off]) == off
    assert fairest([off, further, further]) == further
    assert fairest([further, more, further, off]) == off
    assert fairest([further, EVEN]) == EVEN
    assert EVEN.is_even
    assert not off.is_even
    assert not further.is_even


def test_leases_and_admissions_belong_together() -> None:
    """Each that is alone is found by name, but for those that have a row."""
    leases = [Held(ONE, "acme"), Held(TWO, "acme")]
    verdict = check_requests(
        [], leases=leases, open_copies={TWO: "gw-1", THREE: "gw-1"}, known=frozenset()
    )
    assert [(f.request_id, f.subject, f.size) for f in verdict.findings] == [
        (ONE, "acme", 1),
        (THREE, "gw-1", 1),
    ]
    assert check_requests(
        [], leases=leases, open_copies={TWO: "gw-1", THREE: "gw-1"}, known=frozenset({ONE, THREE})
    ).ok
    assert check_requests([], leases=None, open_copies={THREE: "gw-1"}, known=frozenset()).ok


def test_as_many_leases_as_were_not_copied_are_nobodys_fault() -> None:
    leases = [Held(ONE, "acme"), Held(TWO, "acme")]
    for uncopied, found in ((2, 0), (1, 2)):
        verdict = check_requests(
            [], leases=leases, open_copies={}, known=frozenset(), uncopied=uncopied
        )
        assert len(verdict.findings) == found
