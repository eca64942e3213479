"""Admission: place and scopes held, and the journal knows. Or nothing is held at all."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gateway.domain.admission import Demand
from gateway.domain.lease import Admitted
from gateway.domain.scopes import ScopeUse
from gateway.errors import Overloaded, QuotaExceeded, WeirError
from gateway.serving.asking import Asking
from gateway.serving.authenticate import request_class
from gateway.serving.estimate import Estimate
from gateway.serving.leases import Leases
from gateway.serving.ports import ClientGone, HeldLease, UsageJournal
from gateway.serving.spending import Spending


@dataclass(frozen=True)
class Admission:
    """What an admitted request holds and for what needs, and the use of its scopes then."""

    admitted: Admitted
    lease: HeldLease
    uses: tuple[ScopeUse, ...]
    needs: Estimate


async def admit(
    asking: Asking,
    needs: Estimate,
    *,
    count: Callable[[], Awaitable[Estimate]],
    leases: Leases,
    journal: UsageJournal,
) -> Admission:
    """Hold lease and reservation, and have it in the journal. What is refused for tokens that were
    not counted is counted, and asked for once more: a refusal rests on a count.

    Raises what `Leases.acquire` and `count` raise, Unpriced, Overloaded(metering_unavailable) where
    usage cannot be recorded, ClientGone where the client left meanwhile. Then nothing is held.
    """
    if journal.failing:
        raise Overloaded("usage cannot be recorded", code="metering_unavailable")
    try:
        lease, uses = await _acquire(asking, needs, leases)
    except WeirError as refused:
        if not (needs.spared and refused.rests_on_tokens):
            raise
        needs = await count()
        lease, uses = await _acquire(asking, needs, leases)
    admitted = _admitted(asking, needs, lease)
    try:
        _check_budget(asking.spending, uses)
        if asking.arrival.connection.left:
            raise ClientGone
        await journal.admitted(admitted)
    except BaseException:
        await leases.settle(lease, actual_tokens=0, ran=False)
        raise
    return Admission(admitted, lease, uses, needs)


async def _acquire(
    asking: Asking, needs: Estimate, leases: Leases
) -> tuple[HeldLease, tuple[ScopeUse, ...]]:
    spending = asking.spending
    spending.reserve(needs, asking.route.providers())
    demand = Demand(
        request_id=asking.arrival.request_id.hex,
        sequences=asking.request.sequences,
        tokens=needs.tokens,
        floor_tokens=needs.floor_tokens,
        cost_pico=spending.cost_pico,
        month=spending.month,
    )
    try:
        return await leases.acquire(
            asking.caller, asking.model.id, demand, is_bounded=needs.is_bounded
        )
    except QuotaExceeded as refused:
        spending.say_what_fits(refused)
        raise


def _check_budget(spending: Spending, uses: tuple[ScopeUse, ...]) -> None:
    """The store may know a budget that this gateway has not heard of yet."""
    spending.has_budget |= any(use.limits.budget_pico is not None for use in uses)
    spending.require_price()


def _admitted(asking: Asking, needs: Estimate, lease: HeldLease) -> Admitted:
    caller, request = asking.caller, asking.request
    return Admitted(
        request_id=asking.arrival.request_id,
        tenant_id=caller.tenant.id,
        api_key_id=caller.key.id,
        model=request.model,
        request_class=request_class(caller, asked_batch=request.asked_batch).value,
        admitted_at_ms=asking.arrival.at_ms,
        prompt_tokens=needs.prompt_tokens,
        reserved_tokens=lease.reserved_tokens,
        sequences=request.sequences,
        currency=caller.tenant.currency,
    )
