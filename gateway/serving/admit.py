"""Admission: place and scopes held, and the journal knows. Or nothing is held at all."""

from dataclasses import dataclass

from gateway.domain.admission import Demand
from gateway.domain.lease import Admitted
from gateway.domain.scopes import ScopeUse
from gateway.errors import Overloaded
from gateway.serving.arrival import Arrival
from gateway.serving.authenticate import Caller, request_class
from gateway.serving.estimate import Estimate
from gateway.serving.leases import Leases
from gateway.serving.ports import ClientGone, HeldLease, UsageJournal
from gateway.wire.request import CompletionRequest


@dataclass(frozen=True)
class Admission:
    """What an admitted request holds, and the use of its scopes when it was admitted."""

    admitted: Admitted
    lease: HeldLease
    uses: tuple[ScopeUse, ...]


async def admit(
    arrival: Arrival,
    caller: Caller,
    request: CompletionRequest,
    needs: Estimate,
    *,
    leases: Leases,
    journal: UsageJournal,
) -> Admission:
    """Hold lease and reservation, and have it in the journal.

    Raises what `Leases.acquire` raises, Overloaded(metering_unavailable) where usage cannot be
    recorded, ClientGone where the client left meanwhile. Then nothing is held.
    """
    if journal.failing:
        raise Overloaded("usage cannot be recorded", code="metering_unavailable")
    demand = Demand(
        request_id=arrival.request_id.hex,
        sequences=request.sequences,
        tokens=needs.tokens,
        floor_tokens=needs.floor_tokens,
    )
    lease, uses = await leases.acquire(
        caller, request.model, demand, is_bounded=needs.output_is_maximum
    )
    admitted = Admitted(
        request_id=arrival.request_id,
        tenant_id=caller.tenant.id,
        api_key_id=caller.key.id,
        model=request.model,
        request_class=request_class(caller, asked_batch=request.asked_batch).value,
        admitted_at_ms=arrival.at_ms,
        prompt_tokens=needs.prompt_tokens,
        reserved_tokens=lease.reserved_tokens,
        sequences=request.sequences,
        currency=caller.tenant.currency,
    )
    try:
        if arrival.connection.left:
            raise ClientGone
        await journal.admitted(admitted)
    except BaseException:
        await leases.settle(lease, actual_tokens=0, ran=False)
        raise
    return Admission(admitted, lease, uses)
