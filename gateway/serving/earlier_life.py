"""Leases that an earlier life of this gateway held, as its journal remembers them."""

from collections.abc import Sequence

from billing.domain.price_book import PriceBook
from billing.domain.rating import rated
from billing.domain.usage_record import UsageRecord
from gateway.domain.billing_month import month_key
from gateway.domain.lease import Admitted
from gateway.domain.orphans import needs_rating
from gateway.domain.spend import scope_names
from gateway.serving.leases import Leases
from gateway.serving.ports import Directory, HeldLease


def lost_lease(lost: Admitted) -> HeldLease:
    """The lease of a request that ran when that life ended."""
    return HeldLease(
        request_id=lost.request_id.hex,
        tenant_id=lost.tenant_id,
        key_id=lost.api_key_id,
        model=lost.model,
        sequences=lost.sequences,
        reserved_tokens=lost.reserved_tokens,
        second=0,
        scope_names=scope_names(lost.api_key_id, lost.model),
    )


def recorded_lease(record: UsageRecord, time_zone: str) -> HeldLease:
    """The lease of a request that had ended, of a tenant billed in that zone; in no month where
    nobody knows its currency, and so it has no cost."""
    currency, month = record.currency, ""
    if currency is not None:
        month = month_key(record.admitted_at_ms, time_zone, currency)
    return HeldLease(
        request_id=record.request_id.hex,
        tenant_id=record.tenant_id,
        key_id=record.api_key_id,
        model=record.model,
        sequences=record.sequences,
        reserved_tokens=0,
        second=0,
        scope_names=scope_names(record.api_key_id, record.model),
        month=month,
    )


def settle_recorded(records: Sequence[UsageRecord], directory: Directory, leases: Leases) -> None:
    """What an earlier life recorded and could not ship it may not have settled either."""
    for record in records:
        tenant = directory.tenant(record.tenant_id)
        if tenant is not None:
            leases.settle_again(
                recorded_lease(record, tenant.time_zone),
                actual_tokens=record.prompt_tokens + record.output_tokens,
                actual_cost_pico=record.cost_pico or 0,
            )


def rated_if_lost(record: UsageRecord, directory: Directory) -> UsageRecord:
    """A lost request's record with what its tokens would have cost; nobody pays for it."""
    if not needs_rating(record):
        return record
    book = directory.price_book()
    if not directory.knows_prices_at(record.admitted_at_ms):
        book = PriceBook(())
    return rated(record, book, record.currency)
