"""What a gateway records with: its journal's shipper, the second copy, its place in the list of
gateways, and what looks after those that are gone and after the books."""

import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from billing.domain.usage_record import UsageRecord
from gateway.adapters.alert_webhook import Webhook
from gateway.adapters.budget_watch import BudgetWatch
from gateway.adapters.copying import Copying
from gateway.adapters.engine_counters import EngineWitness
from gateway.adapters.postgres_past import RestoreWatch
from gateway.adapters.presence import Presence
from gateway.adapters.reaper import Reaper
from gateway.adapters.reaper_restart import CopiedEnds, settle_when_shipped
from gateway.adapters.reconciler import Reconciler
from gateway.adapters.reconciler_journals import JournalFiles
from gateway.adapters.reconciler_live import LiveStores
from gateway.adapters.reconciling import Reconciling
from gateway.adapters.second_copy_records import Copies
from gateway.adapters.shipper import Shipper
from gateway.adapters.turns import RedisTurns
from gateway.serving.earlier_life import rated_if_lost, settle_recorded

if TYPE_CHECKING:
    from gateway.app import Gateway

REMEMBERED_LONGER_MS = 24 * 3_600_000
"""What was shipped is remembered for longer than any journal has it."""


def ends_known_of(gateway: "Gateway") -> CopiedEnds:
    """What is known of requests that the gateway's journal has open when it opens again."""
    return CopiedEnds(
        Copies(gateway.redis), lambda record: rated_if_lost(record, gateway.directory)
    )


def open_metering(gateway: "Gateway") -> None:
    """Put them together once the journal is open; none of them runs yet."""
    settings, journal = gateway.settings, gateway.journal

    def settle_late(records: list[UsageRecord]) -> None:
        settle_recorded(records, gateway.directory, gateway.leases)

    gateway.shipper = Shipper(
        gateway.shipping_postgres,
        journal,
        interval_ms=settings.shipper_interval_ms,
        batch_rows=settings.shipper_batch_rows,
        retention_hours=settings.journal_retention_hours,
    )
    gateway.shipper.on_late = settle_late
    gateway.copied = Copying(
        gateway.redis,
        journal,
        gateway.shipper,
        entries_max=settings.second_copy_entries_max,
        progress=gateway.live.so_far,
    )
    settle_when_shipped(gateway.shipper, journal.recovered.ended, settle_late)
    gateway.presence = Presence(
        gateway.gateways,
        journal.gateway_id,
        gateway.shipper,
        owed=lambda: gateway.leases.owed,
        heartbeat=gateway.copied.heartbeat,
        postgres=gateway.postgres,
    )
    gateway.reaper = Reaper(
        gateway.gateways,
        Copies(gateway.redis),
        gateway.postgres,
        RedisTurns(gateway.redis),
        own=journal.gateway_id,
        rate=lambda record: rated_if_lost(record, gateway.directory),
        on_ends=settle_late,
        gone_after_ms=settings.gateway_gone_ms,
        final_after_ms=settings.provisional_hours * 3_600_000,
    )
    gateway.restore_watch = RestoreWatch(
        gateway.redis,
        gateway.postgres,
        RedisTurns(gateway.redis),
        kept_ms=settings.journal_retention_hours * 3_600_000 + REMEMBERED_LONGER_MS,
    )
    _open_books(gateway)


def _open_books(gateway: "Gateway") -> None:
    """What looks after the books of all gateways, one of them at a time."""
    settings, journal = gateway.settings, gateway.journal
    gateway.witness = EngineWitness(
        gateway.postgres, gateway.directory, gateway.engine, journal.gateway_id
    )
    gateway.reconciling = Reconciling(
        gateway.reconciling_postgres,
        Reconciler(
            gateway.reconciling_postgres,
            LiveStores(gateway.redis, gateway.births),
            gone_after_ms=settings.gateway_gone_ms,
        ),
        [JournalFiles(settings.journal_dir, journal.gateway_id)],
    )
    webhook = None
    if settings.alert_webhook_url:
        webhook = Webhook(
            settings.alert_webhook_url,
            settings.alert_webhook_secret,
            now_s=lambda: int(time.time()),
        )
    gateway.budget_watch = BudgetWatch(gateway.reconciling_postgres, webhook)


def metering_loops(gateway: "Gateway") -> list[Coroutine[Any, Any, None]]:
    """What of it runs behind the requests, for as long as the gateway does; the shipper starts by
    itself."""
    return [
        gateway.presence.run(),
        gateway.copied.run(),
        gateway.reaper.run(),
        gateway.restore_watch.run(),
        gateway.witness.run(),
        gateway.completeness.run(),
        gateway.reconciling.run(),
        gateway.budget_watch.run(),
    ]
