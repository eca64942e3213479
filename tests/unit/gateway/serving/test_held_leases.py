"""What is remembered of held leases: where they may be found, and until when the store counts
them."""

from collections.abc import Sequence

import pytest
from memory_leases import Holder
from memory_ports import TTL_MS

from gateway.domain.admission import Paused, Renewed
from gateway.serving import held_leases, sweeping
from gateway.serving.ports import HeldLease, LedgerUnavailable
from gateway.serving.settlements import Holding


async def marked_once(holder: Holder) -> None:
    """Held and marked; not marked again by what follows within a mark's time."""
    await holder.ask("a")
    await holder.leases._held.renew_all()
    assert holder.ledger.marked == ["acme"]


async def test_a_store_that_was_away_is_told_who_is_active() -> None:
    """Whatever it lost meanwhile."""
    holder = Holder()
    await marked_once(holder)
    await holder.lose()
    await holder.healed()
    assert holder.ledger.marked[:2] == ["acme", "acme"]


async def test_a_broken_connection_forgets_the_marks() -> None:
    """What answers next may be another server, which knows nothing."""
    holder = Holder()
    await marked_once(holder)
    holder.leases._broken()
    await holder.leases._held.renew_all()
    assert holder.ledger.marked == ["acme", "acme"]


async def test_a_lease_that_is_held_again_marks_its_tenant() -> None:
    """The store lost it, so it may have lost the mark: told in the same renewal."""
    holder = Holder()
    await marked_once(holder)
    holder.ledger.lose_everything()
    await holder.leases._held.renew_all()
    assert holder.ledger.marked == ["acme", "acme"]
    await holder.leases._held.renew_all()
    assert holder.ledger.marked == ["acme", "acme"]


async def test_a_tenant_that_waits_is_marked_again() -> None:
    """It began anew in the store."""
    holder = Holder()
    await marked_once(holder)
    now_ms = holder.clock.now_ms()
    holder.replies = [Paused(until_ms=now_ms + 1, now_ms=now_ms)]
    await holder.refused("b")
    holder.replies = []
    await holder.ask("b")
    assert holder.ledger.marked == ["acme", "acme"]


async def test_a_mark_that_failed_alone_is_not_tried_by_every_request() -> None:
    """The shard that knows all tenants is away, others are not: a time-out once a second."""
    holder = Holder()
    mark, tries = holder.ledger.mark_active, 0

    async def fails(tenant_ids: Sequence[str], *, now_ms: int) -> None:
        nonlocal tries
        tries += 1
        raise LedgerUnavailable(TimeoutError)

    holder.ledger.mark_active = fails  # type: ignore[method-assign]
    await holder.ask("a")
    await holder.ask("b")
    assert tries == 1
    holder.ledger.mark_active = mark  # type: ignore[method-assign]
    holder.clock.advance(held_leases._MARK_FAILED_MS)
    await holder.leases._held.renew_all()
    assert holder.ledger.marked == ["acme"]


def a_holding(holder: Holder) -> Holding:
    (holding,) = holder.leases._held._held.values()
    return holding


async def test_a_renewal_of_which_some_were_over_confirms_none() -> None:
    """The store does not say which: one that was settled, or was lost and is over, is not counted,
    and nobody may run in its place."""
    holder = Holder()
    await holder.ask("a")
    before = a_holding(holder).confirmed_ms, a_holding(holder).asked_us

    async def over(tenant_id: str, leases: Sequence[HeldLease]) -> Renewed:
        return Renewed(0, 0, 0, len(leases), holder.clock.now_ms())

    holder.clock.advance(TTL_MS // 2)
    holder.ledger.renew = over  # type: ignore[method-assign]
    await holder.leases._held.renew_all()
    holding = a_holding(holder)
    assert (holding.confirmed_ms, holding.asked_us, holding.unheard) == (*before, 1)


@pytest.mark.parametrize("took_ms", [0, 40])
async def test_what_a_renewal_took_is_added_to_when_it_was(took_ms: int) -> None:
    """The store says the time of the first lease of many; the last was renewed up to so much
    later, and its cell must count until then."""
    holder = Holder()
    await holder.ask("a")
    renew = holder.ledger.renew

    async def slowly(tenant_id: str, leases: Sequence[HeldLease]) -> Renewed:
        renewed = await renew(tenant_id, leases)
        holder.clock.advance(took_ms)
        return renewed

    holder.ledger.renew = slowly  # type: ignore[method-assign]
    at_ms, asked_us = holder.clock.now_ms(), holder.clock.monotonic_us()
    await holder.leases._held.renew_all()
    holding = a_holding(holder)
    assert holding.confirmed_ms >= at_ms + took_ms
    assert holding.confirmed_ms <= at_ms + took_ms + 1
    assert holding.asked_us == asked_us


def test_a_mark_outlives_who_relies_on_it() -> None:
    """A gateway marks again only after so long; the sweep must not take it out before."""
    assert sweeping.IDLE_MS >= 1.5 * held_leases._MARK_AGAIN_MS
