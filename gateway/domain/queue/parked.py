"""Who waits for limits: the first of them, and who of them is told that something has ended."""

from collections.abc import Collection

from gateway.domain.queue.pool_state import Waiting
from gateway.domain.queue.tickets import Message, Ticket


def first_parked(
    waiting: Collection[Waiting], tenant: str, lot: str | None = None
) -> Ticket | None:
    """The earliest of a lot, or of all that the tenant has."""
    parked = [
        each.ticket
        for each in waiting
        if each.is_parked
        and each.ticket.tenant == tenant
        and (lot is None or each.ticket.lot == lot)
    ]
    return min(parked, key=lambda ticket: (ticket.order_band, ticket.order), default=None)


def looks_after(ended: Ticket, waiting: Collection[Waiting]) -> list[Message]:
    """The limits of one that ran may have room: for the first of its lot, and where its tenant as a
    whole is what is short, for the first of that. Its own gateway knows."""
    told: dict[str, Message] = {}
    for lot in (ended.lot, None):
        first = first_parked(waiting, ended.tenant, lot)
        if first is not None and first.gateway not in (*told, ended.gateway):
            told[first.gateway] = Message(first.gateway, first.id, "", is_grant=False, is_look=True)
    return list(told.values())
