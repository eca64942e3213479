"""How an admitted request is closed: one record, then one settlement, whatever happened before."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from billing.domain.price_book import PriceBook
from billing.domain.rating import rated
from billing.domain.usage_record import Outcome, UsageRecord
from gateway.domain.billing_month import month_key
from gateway.domain.queue.fairness import weighted_tokens
from gateway.errors import WeirError
from gateway.serving.admit import Admission
from gateway.serving.asking import Asking
from gateway.serving.choice import Choice
from gateway.serving.estimator import Estimator
from gateway.serving.leases import Leases
from gateway.serving.live import LiveRequest, SoFar
from gateway.serving.ports import Clock, Directory, UsageJournal
from gateway.serving.queue.places import Places
from gateway.serving.record import count, usage_record
from gateway.telemetry.ended import observe_ended
from gateway.telemetry.logs import log_failure
from gateway.telemetry.request_lines import log_ended

_log = logging.getLogger(__name__)


@dataclass
class Running:
    """One admitted request: what it holds and what is known of it."""

    asking: Asking
    held: Admission
    live: LiveRequest
    choices: list[Choice] = field(default_factory=list)
    record: UsageRecord | None = None
    """What the journal was given."""
    is_settled: bool = False

    def so_far(self) -> SoFar:
        """What it has used until now."""
        used = count(self.choices, self.held.needs.prompt_counts)
        return SoFar(self.held.admitted.request_id, used.prompt, used.output)


class Closing:
    """Records and settles the admitted requests of one gateway."""

    def __init__(
        self,
        *,
        estimator: Estimator,
        leases: Leases,
        places: Places,
        journal: UsageJournal,
        directory: Directory,
        clock: Clock,
        on_ended: Callable[[UsageRecord], None] = lambda _: None,
    ) -> None:
        """`on_ended` hears of each record that is durable."""
        self._estimator = estimator
        self._leases = leases
        self._places = places
        self._journal = journal
        self._directory = directory
        self._clock = clock
        self._on_ended = on_ended

    async def usage(self, running: Running, outcome: Outcome) -> UsageRecord:
        """What it used and costs. Does not raise: where a bug of ours is in the way, the request is
        lost by us."""
        try:
            return await self._usage(running, outcome)
        except Exception as error:  # noqa: BLE001 - a bug of ours; it is recorded all the same
            log_failure(_log, error, "what a request used could not be told")
            return self._lost(running)

    async def _usage(self, running: Running, outcome: Outcome) -> UsageRecord:
        asking, held = running.asking, running.held
        counts = await self._estimator.prompt_counts(
            asking.request, asking.caller.tenant.id, held.needs, running.choices
        )
        used = usage_record(
            held.admitted,
            running.choices,
            outcome,
            prompt_counts=counts,
            arrival_us=asking.arrival.at_us,
            ended_at_ms=self._clock.now_ms(),
            has_media=asking.request.has_media,
            queue_ms=held.queue_ms,
        )
        book = self._directory.price_book()
        if not self._directory.knows_prices_at(used.admitted_at_ms):
            book = PriceBook(())  # unpriced is rated later, a wrong price never again
        return rated(used, book, held.admitted.currency)

    async def record(self, running: Running, record: UsageRecord) -> WeirError | None:
        """Durable on return. What is returned says that it is not: then the admission, which is
        durable, becomes gateway_lost when the journal is next opened."""
        running.record = record
        try:
            await self._journal.ended(record)
        except WeirError as error:
            return error
        except Exception as error:  # noqa: BLE001 - a bug of ours; the lease is settled all the same
            log_failure(_log, error, "request %s could not be recorded", record.request_id)
            return WeirError("the gateway failed on this request")
        observe_ended(record)
        log_ended(record)
        self._on_ended(record)
        return None

    async def settle(self, running: Running, record: UsageRecord) -> None:
        """End the lease by what was recorded, and learn from it."""
        running.is_settled = True
        cost_pico = record.cost_pico
        if cost_pico is None:
            # Until it is rated it counts as the most that it can have cost.
            cost_pico = running.held.lease.cost_pico if record.billable else 0
        await self._leases.settle(
            running.held.lease,
            actual_tokens=record.prompt_tokens + record.output_tokens,
            ran=bool(record.attempts),
            actual_cost_pico=cost_pico,
        )
        await self._leave(running, record)
        self._count_in_its_month(running)
        self._estimator.learn(
            record.tenant_id, record.model, running.held.needs, running.choices, record.outcome
        )

    async def _leave(self, running: Running, record: UsageRecord) -> None:
        """The place is free for the next, and the tenant's share is charged what it really took:
        of what an engine said no more than it was let take, since one wrong count must not hold
        back a tenant's turn for days."""
        self._places.settled(record.tenant_id, record.api_key_id)
        place = running.held.place
        if place is None:
            return
        if not record.attempts:
            await place.unused()
            return
        needs = running.held.needs
        uncached = max(0, record.prompt_tokens - record.cached_prompt_tokens)
        await place.end(
            weighted_tokens(
                uncached_prompt_tokens=min(uncached, needs.prompt_tokens_max),
                output_tokens=min(record.output_tokens, needs.output_tokens_max),
            )
        )

    def _count_in_its_month(self, running: Running) -> None:
        """The tenant's time zone may be another than when it was admitted, and with it the month;
        the store may know only the one that the lease was granted in."""
        spending = running.asking.spending
        tenant = self._directory.tenant(running.asking.caller.tenant.id)
        if tenant is not None and tenant.currency == spending.currency:
            month = month_key(spending.at_ms, tenant.time_zone, tenant.currency)
            if month != spending.month:
                self._leases.uncounted(tenant.id, month)

    async def close(self, running: Running) -> None:
        """Do what a bug or a cancellation left undone: nothing is held on behalf of a request that
        no longer runs. What was not recorded is gateway_lost, which nobody pays for."""
        if running.record is None:
            await self.record(running, self._lost(running))
        if not running.is_settled and running.record is not None:
            await self.settle(running, running.record)

    def _lost(self, running: Running) -> UsageRecord:
        """As much as is known. Counts that cannot even be added up are left out."""
        try:
            return self._unpaid(running, running.choices)
        except Exception as error:  # noqa: BLE001 - the bug may be in what counts
            log_failure(_log, error, "what a request used could not be told")
            return self._unpaid(running, [])

    def _unpaid(self, running: Running, choices: list[Choice]) -> UsageRecord:
        held = running.held
        used = usage_record(
            held.admitted,
            choices,
            Outcome.GATEWAY_LOST,
            prompt_counts=held.needs.prompt_counts,
            arrival_us=running.asking.arrival.at_us,
            ended_at_ms=self._clock.now_ms(),
            has_media=running.asking.request.has_media,
            queue_ms=held.queue_ms,
        )
        return rated(used, PriceBook(()), held.admitted.currency)
