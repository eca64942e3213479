"""Where a tenant stands in its pool's queue, from what the store shows of all tenants."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.domain.queue.prediction import Backlog, ahead_of
from gateway.domain.queue.tickets import Band


@dataclass(frozen=True)
class Share:
    """What one tenant has in one band of a pool; only of tenants that have something there."""

    requests: int
    """That wait for a place."""
    tokens: int
    """Weighted tokens of those."""
    weight: int
    """As its latest ticket had it; 1 where none waits."""
    running: int
    """Places."""
    counter: int


Shares = Mapping[str, Mapping[Band, Share]]
"""Of each tenant."""


@dataclass(frozen=True)
class Standing:
    """Of one tenant in one band."""

    requests: int
    """Of its own that wait for a place."""
    ahead_tokens: int | None
    """Weighted tokens that go before the first of those; None where none waits."""
    next_ahead_tokens: int
    """Weighted tokens that would go before one that came now."""


def standing_of(tenant: str, band: Band, weight: int, shares: Shares) -> Standing:
    """Where `tenant`, whose requests come with this weight, stands. Of a tenant that was served
    more than others and has nothing there now that is not known: it may have more ahead."""
    own = shares.get(tenant, {}).get(band)
    others = [
        each[band]
        for name, each in shares.items()
        if name != tenant and band in each and each[band].requests
    ]
    # Interactive goes before all batch.
    before = 0
    if band is Band.BATCH:
        before = sum(
            each[Band.INTERACTIVE].tokens for each in shares.values() if Band.INTERACTIVE in each
        )
    if own is None:
        # It would be lifted to whoever was served least, and so come first.
        return Standing(requests=0, ahead_tokens=None, next_ahead_tokens=before)
    backlogs = [Backlog(each.counter, each.tokens, each.weight) for each in others]
    first = before + ahead_of(own.counter, 0, weight, backlogs)
    return Standing(
        requests=own.requests,
        ahead_tokens=first if own.requests else None,
        next_ahead_tokens=before + ahead_of(own.counter, own.tokens, weight, backlogs),
    )


def wait_of(ahead: int, *, all_tokens: int, all_wait_ms: int | None) -> int | None:
    """What so many weighted tokens ahead are expected to take, in a band of which all that goes
    before whoever is last in it is expected to take `all_wait_ms`. None where nobody knows."""
    if ahead <= 0:
        return 0
    if all_wait_ms is None or all_tokens <= 0:
        return None
    return all_wait_ms * ahead // all_tokens
