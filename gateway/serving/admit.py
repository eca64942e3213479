"""Admission: a place on a worker and the tenant's scopes are held, and the journal knows. Or
nothing is held at all."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from gateway.domain.admission import Demand
from gateway.domain.lease import Admitted
from gateway.domain.scopes import ScopeUse
from gateway.errors import LimitReached, Overloaded, QuotaExceeded, WeirError
from gateway.serving.asking import Asking
from gateway.serving.authenticate import Caller, request_class
from gateway.serving.estimate import Estimate
from gateway.serving.leases import Leases
from gateway.serving.limit_headers import queue_header
from gateway.serving.ports import ClientGone, Clock, HeldLease, UsageJournal
from gateway.serving.queue.asked import place_asked
from gateway.serving.queue.held import HeldPlace
from gateway.serving.queue.places import Places
from gateway.serving.queue.refusals import WaitTooLong, WorkersGone
from gateway.serving.queue.scopes import LeaseSight
from gateway.serving.spending import Spending
from gateway.telemetry.trace_names import JOURNAL, LEASE


@dataclass(frozen=True)
class ScopesHeld:
    """The lease of a request, for these needs, and the use of its scopes then."""

    lease: HeldLease
    uses: tuple[ScopeUse, ...]
    needs: Estimate


@dataclass(frozen=True)
class Admission:
    """What an admitted request holds and for what needs, and the use of its scopes then."""

    admitted: Admitted
    lease: HeldLease
    uses: tuple[ScopeUse, ...]
    needs: Estimate
    place: HeldPlace | None
    """None where it goes to a hosted provider, since no worker has room for it in time."""
    in_vain_ms: int = 0
    """It waited so long before for a place that it did not get."""

    @property
    def queue_ms(self) -> int:
        """How long it waited before it was sent anywhere."""
        return self.in_vain_ms + (0 if self.place is None else self.place.queue_ms)


async def admit(
    asking: Asking,
    needs: Estimate,
    *,
    count: Callable[[], Awaitable[Estimate]],
    caller_now: Callable[[], Awaitable[Caller]],
    is_served: bool,
    leases: Leases,
    journal: UsageJournal,
    places: Places,
    clock: Clock,
) -> Admission:
    """Hold a place, lease and reservation, and have it in the journal. `is_served`: the
    fleet has a worker for it; otherwise a hosted provider has, and it waits for no place.
    `caller_now` is asked again once it has waited: what was revoked or lowered meanwhile holds.

    Raises what `caller_now`, `Places.admit`, `Leases.acquire` and `count` raise, Unpriced,
    Overloaded(metering_unavailable) where usage cannot be recorded, ClientGone where the client
    left meanwhile. Then nothing is held, and the headers of the refusal say how long it waited.
    """
    if journal.failing:
        raise Overloaded("usage cannot be recorded", code="metering_unavailable")
    scopes = RequestScopes(asking, needs, count, leases, caller_now)
    wait = Wait(clock, asking.waited_ms)
    try:
        return await _admit(
            asking,
            scopes,
            leases=leases,
            journal=journal,
            places=places if is_served else None,
            wait=wait,
        )
    except WeirError as refused:
        if is_served:
            raise wait.told_to(refused) from None
        raise


async def _admit(
    asking: Asking,
    scopes: "RequestScopes",
    *,
    leases: Leases,
    journal: UsageJournal,
    places: Places | None,
    wait: "Wait",
) -> Admission:
    place: HeldPlace | None = None
    if places is None:
        held = await scopes.admit()
    else:
        place, held = await _placed(asking, scopes, places, wait)
    try:
        queue_ms = wait.in_vain_ms + (0 if place is None else place.queue_ms)
        admitted = _admitted(asking, held, queue_ms)
        _check_budget(asking.spending, held.uses)
        if asking.arrival.connection.left:
            raise ClientGone
        await asking.arrival.trace.of(JOURNAL, journal.admitted(admitted))
    except BaseException:
        await leases.settle(held.lease, actual_tokens=0, ran=False)
        if place is not None:
            await place.unused()
        raise
    return Admission(admitted, held.lease, held.uses, held.needs, place, wait.in_vain_ms)


class Wait:
    """How long a request has waited for a place, `waited_ms` of it for any worker at all."""

    def __init__(self, clock: Clock, waited_ms: int = 0) -> None:
        self._clock = clock
        self._since_us = clock.monotonic_us() - waited_ms * 1000
        self.in_vain_ms = waited_ms
        """For a place that it did not get."""

    @property
    def so_far_ms(self) -> int:
        """In all."""
        return (self._clock.monotonic_us() - self._since_us) // 1000

    def told_to(self, refused: WeirError) -> WeirError:
        """The refusal, with how long was waited for it."""
        refused.headers = (*refused.headers, queue_header(self.so_far_ms))
        return refused

    def was_in_vain(self) -> None:
        """It had no place until now."""
        self.in_vain_ms = self.so_far_ms


async def _placed(
    asking: Asking, scopes: "RequestScopes", places: Places, wait: Wait
) -> tuple[HeldPlace | None, ScopesHeld]:
    """A place and the scopes. What may go to a hosted provider waits for a worker only as long as
    an interactive request may take to its first token; but where its own limits have no room, which
    no provider changes, for as long as others."""
    asked, connection = (
        place_asked(asking, scopes.needs, places.settings),
        asking.arrival.connection,
    )
    if asking.route.target() is None:
        return await places.admit(asked, scopes, connection)
    soon = replace(asked, wait_ms=min(asked.wait_ms, places.settings.hosted_after_ms))
    try:
        return await places.admit(soon, scopes, connection)
    except LimitReached as refused:
        limit = refused
    except (WorkersGone, WaitTooLong) as gone:
        wait.was_in_vain()
        if asking.route.target() is not None:
            try:
                return None, await scopes.admit()
            except LimitReached as refused:
                limit = refused
        elif isinstance(gone, WorkersGone):
            raise
        else:
            rest = replace(asked, wait_ms=max(0, asked.wait_ms - soon.wait_ms))
            return await places.admit(rest, scopes, connection)
    rest_ms = asked.wait_ms - (wait.so_far_ms - asking.waited_ms)
    if limit.type == "queue" or not asked.max_queued or rest_ms <= 0 or soon == asked:
        raise limit
    wait.was_in_vain()
    try:
        return await places.admit(replace(asked, wait_ms=rest_ms, is_new=False), scopes, connection)
    except (WorkersGone, WaitTooLong):
        wait.was_in_vain()
        if asking.route.target() is None:
            raise
    return None, await scopes.admit()


class RequestScopes:
    """The scopes of one request (`queue.scopes.Scopes`). What is refused for tokens that were not
    counted is counted, and asked for once more: a refusal rests on a count."""

    def __init__(
        self,
        asking: Asking,
        needs: Estimate,
        count: Callable[[], Awaitable[Estimate]],
        leases: Leases,
        caller_now: Callable[[], Awaitable[Caller]],
    ) -> None:
        self.needs = needs
        self._caller_now = caller_now
        self._asking = asking
        self._count = count
        self._leases = leases

    async def admit(self) -> ScopesHeld:
        """See `Scopes`. Raises what `Leases.acquire` and the count raise."""
        try:
            return await self._acquire()
        except WeirError as refused:
            if not (self.needs.spared and refused.rests_on_tokens):
                raise
            self.needs = await self._count()
            return await self._acquire()

    async def has_room(self) -> bool:
        """See `Sight`."""
        try:
            sight = await self._sight()
        except WeirError:
            return True  # it is told when it asks
        return await sight.has_room()

    async def refusal(self, *, of_budget: bool = False) -> WeirError | None:
        """See `Sight`. What rests on tokens that were not counted is not told."""
        sight = await self._sight()
        refused = await sight.refusal(of_budget=of_budget)
        if refused is not None and refused.rests_on_tokens and self.needs.spared:
            return None
        if isinstance(refused, QuotaExceeded):
            self._asking.spending.say_what_fits(refused)
        return refused

    async def _sight(self) -> LeaseSight:
        asking, caller = self._asking, await self._caller_now()
        return LeaseSight(self._leases, caller, asking.model.id, self._demand())

    async def _acquire(self) -> ScopesHeld:
        asking, spending = self._asking, self._asking.spending
        caller, demand = await self._caller_now(), self._demand()
        try:
            lease, uses = await asking.arrival.trace.of(
                LEASE,
                self._leases.acquire(
                    caller, asking.model.id, demand, is_bounded=self.needs.is_bounded
                ),
            )
        except QuotaExceeded as refused:
            spending.say_what_fits(refused)
            raise
        return ScopesHeld(lease, uses, self.needs)

    def _demand(self) -> Demand:
        asking, spending = self._asking, self._asking.spending
        spending.reserve(self.needs, asking.route.providers())
        return Demand(
            request_id=asking.arrival.request_id.hex,
            sequences=asking.request.sequences,
            tokens=self.needs.tokens,
            floor_tokens=self.needs.floor_tokens,
            cost_pico=spending.cost_pico,
            month=spending.month,
        )


def _check_budget(spending: Spending, uses: tuple[ScopeUse, ...]) -> None:
    """The store may know a budget that this gateway has not heard of yet."""
    spending.has_budget |= any(use.limits.budget_pico is not None for use in uses)
    spending.require_price()


def _admitted(asking: Asking, held: ScopesHeld, queue_ms: int) -> Admitted:
    caller, request = asking.caller, asking.request
    return Admitted(
        request_id=asking.arrival.request_id,
        tenant_id=caller.tenant.id,
        api_key_id=caller.key.id,
        model=request.model,
        request_class=request_class(caller, asked_batch=request.asked_batch).value,
        admitted_at_ms=asking.arrival.at_ms,
        prompt_tokens=held.needs.prompt_tokens,
        reserved_tokens=held.lease.reserved_tokens,
        sequences=request.sequences,
        currency=caller.tenant.currency,
        queue_ms=queue_ms,
    )
