"""REC-2: every admitted request has ended or is live, and whatever is live was admitted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from billing.domain.reconciliation.findings import Check, Finding, Verdict, terms


@dataclass(frozen=True, kw_only=True)
class Balance:
    """A gateway's admissions and ends in Postgres, over all its boots, and what it says itself."""

    gateway_id: str
    admitted: int
    ended: int
    missing: int = 0
    """Numbers that its disk has lost: each is an admission or an end."""
    without_place: int = 0
    """Rows of its requests that came by another way than its journal, which has not told their
    end."""
    illegible: int = 0
    """Entries of its journal that nobody could read, which are counted as ends: each may be an
    admission."""
    open_count: int | None = None
    """Requests that it says are open, at the very place that Postgres has; None where it was
    further on, or said nothing."""
    is_gone: bool = False
    """Not seen for longer than its requests can wait for it: nothing of it is open."""

    @property
    def open(self) -> int:
        """Requests that Postgres has the admission of and not the end."""
        return self.admitted - self.ended

    @property
    def is_compared(self) -> bool:
        """Whether it is known what is open."""
        return self.is_gone or self.open_count is not None

    @property
    def is_even(self) -> bool:
        """Whether it was compared, and nothing is wrong."""
        return self.is_compared and not any(_of_balance(self))


def fairest(looks: Sequence[Balance]) -> Balance:
    """Of several looks at the same gateway the one that says most in its favour: that was compared,
    and differs by least. Where only one was compared and that one differs, the last that was not:
    a gateway of the release before counts what waits for its disk, at times."""
    compared = [each for each in looks if each.is_compared]
    if not compared or (len(compared) == 1 < len(looks) and not compared[0].is_even):
        return [each for each in looks if not each.is_compared][-1]
    return min(compared, key=lambda each: sum(f.size for f in _of_balance(each)))


@dataclass(frozen=True)
class Held:
    """A lease that Redis holds."""

    request_id: UUID
    tenant_id: str


def check_requests(
    balances: Sequence[Balance],
    *,
    leases: Sequence[Held] | None,
    open_copies: Mapping[UUID, str],
    known: frozenset[UUID],
    uncopied: int = 0,
) -> Verdict:
    """REC-2. `leases` and `open_copies` are those that were there for a while; `leases` is None
    where nobody could ask. `open_copies` are requests that a live gateway has admitted and not
    ended, each with that gateway; `known` are those that have a row. So many open requests are
    `uncopied`, that no more leases without a copy are anybody's fault."""
    findings = [finding for balance in balances for finding in _of_balance(balance)]
    held = {lease.request_id for lease in leases or ()}
    strange = [
        lease
        for lease in leases or ()
        if lease.request_id not in known and lease.request_id not in open_copies
    ]
    findings += [
        Finding(
            Check.REQUESTS,
            lease.tenant_id,
            lease.request_id,
            1,
            "leases",
            "a lease is held and no gateway has admitted its request",
        )
        for lease in strange
        if len(strange) > uncopied
    ]
    findings += [
        Finding(
            Check.REQUESTS, gateway_id, request_id, 1, "requests", "it is open and holds no lease"
        )
        for request_id, gateway_id in sorted(open_copies.items())
        if leases is not None and request_id not in held and request_id not in known
    ]
    return Verdict(
        Check.REQUESTS,
        terms(
            admitted=sum(balance.admitted for balance in balances),
            ended=sum(balance.ended for balance in balances),
            live=sum(balance.open_count or 0 for balance in balances if not balance.is_gone),
            told_by_others=sum(balance.without_place for balance in balances),
            numbers_lost=sum(balance.missing for balance in balances),
            not_comparable=sum(not b.is_gone and b.open_count is None for b in balances),
            leases=len(held),
        ),
        tuple(findings),
    )


def _of_balance(balance: Balance) -> Iterator[Finding]:
    """What may differ without anybody being wrong: a number that was lost, a row that came by
    another way, whose end the journal has not told, and an admission that was taken for an end."""
    most = balance.open + balance.missing + 2 * balance.illegible
    least = balance.open - balance.missing - balance.without_place
    live = 0 if balance.is_gone else balance.open_count
    if live is None:
        return
    if live < least:
        yield _finding(balance, least - live, "admitted, and neither ended nor live")
    elif live > most:
        yield _finding(balance, live - most, "live, and nobody has their admission")


def _finding(balance: Balance, size: int, what: str) -> Finding:
    return Finding(Check.REQUESTS, balance.gateway_id, None, size, "requests", what)
