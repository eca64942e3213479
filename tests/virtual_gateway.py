"""Gateways in front of simulated replicas on the virtual clock: the queue's rules, without HTTP.

`VirtualGateways` takes a schedule, asks `Pool` for a place for each request, sends what is granted
to a replica, and tells the pool of the first token and of the end, as a gateway does. Ceilings are
fixed or learned from what the replicas show. Times are simulated milliseconds.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from backend.loadtest.plan import PlannedRequest, TrafficClass
from backend.loadtest.prompts import PromptText
from backend.loadtest.run import Outcome
from backend.loadtest.virtual_target import ENDS, simulated_request
from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import Profile
from backend.simulated.request import EndReason, SimulatedRequest
from backend.simulated.virtual import VirtualReplicas
from gateway.domain.queue.capacity import SEEN_MS, WorkerRoom
from gateway.domain.queue.ceilings import NO_CEILING, START, Ceilings, EngineFacts
from gateway.domain.queue.fairness import weighted_tokens
from gateway.domain.queue.learning import LatencyRule
from gateway.domain.queue.pool import Pool
from gateway.domain.queue.samples import Samples
from gateway.domain.queue.tickets import Band, Granted, QueueFull, Ticket, TooLong

MESSAGE_MS = 2.0
"""From a step of the pool to the gateway that is told of it."""
LOOK_MS = 1_000.0
UNRENEWED_MS = 10**9
"""No gateway dies here, so nobody renews."""
UNLIMITED = Ceilings(NO_CEILING, NO_CEILING, NO_CEILING)


@dataclass(frozen=True, slots=True)
class Waits:
    """How long requests are ready to wait."""

    interactive_ms: int = 10_000
    batch_ms: int = 10_000
    """Enough that some wait all the time. In earnest it is minutes; each that waits costs time."""
    promoted_before_ms: int = 1_000


@dataclass(slots=True, eq=False)
class Flight:
    """One request under way."""

    planned: PlannedRequest
    gateway: int
    outcome: Outcome
    request: SimulatedRequest | None = None
    """Where it runs."""
    is_taken_back: bool = False
    granted_ms: float = 0.0
    stretch_ms: float = 0.0
    """When the present stretch of its answer began, and its tokens since."""
    stretch_tokens: int = 0

    @property
    def id(self) -> str:
        """Its ticket's."""
        return f"r{self.planned.number}"


class Learning:
    """The ceilings of some workers, learned from the samples of some gateways."""

    def __init__(
        self,
        rule: LatencyRule,
        facts: EngineFacts,
        *,
        workers: int = 1,
        gateways: int = 1,
        start: int = START,
    ) -> None:
        self.rule, self.facts = rule, facts
        self.learned = [rule.begin(facts, now_ms=0, batch=start) for _ in range(workers)]
        self.seen = [[Samples(each.epoch) for each in self.learned] for _ in range(gateways)]
        self.decided: list[tuple[int, int, int]] = []
        """When, of which worker, to where batch stops."""

    def ceilings(self, worker: int, now_ms: int) -> Ceilings:
        """As they are now."""
        return self.rule.ceilings(self.learned[worker], self.facts, now_ms=now_ms)

    def add(self, gateway: int, worker: int, samples: Samples) -> None:
        """A gateway saw this of a worker."""
        seen = self.seen[gateway]
        seen[worker] = seen[worker].plus(samples)

    def decide(self, worker: int, now_ms: int) -> None:
        """All gateways' samples of a worker, and the rule."""
        samples = Samples(self.learned[worker].epoch)
        for seen in self.seen:
            samples = samples.plus(seen[worker])
        after = self.rule.decide(self.learned[worker], samples, self.facts, now_ms=now_ms)
        if after is not None:
            self.learned[worker] = after
            self.decided.append((now_ms, worker, after.batch_max))


@dataclass(slots=True)
class Counted:
    """What happened."""

    tokens: Counter[TrafficClass] = field(default_factory=Counter)
    """Output tokens within the window."""
    weighted: Counter[str] = field(default_factory=Counter)
    """Weighted tokens that each tenant was served within the window, where weights are given."""
    taken_back: int = 0
    refused: int = 0


class VirtualGateways:
    """`gateways` of them, over one pool and its replicas."""

    def __init__(
        self,
        profile: Profile,
        flags: SchedulerFlags,
        *,
        replicas: int = 1,
        gateways: int = 1,
        learning: Learning | None = None,
        fixed: Ceilings = UNLIMITED,
        waits: Waits | None = None,
        weights: dict[str, int] | None = None,
        window_ms: tuple[float, float] = (0.0, float("inf")),
    ) -> None:
        self.fleet = VirtualReplicas(profile, flags, self, replicas)
        self.pool = Pool(UNRENEWED_MS)
        self.counted = Counted()
        self.flights: dict[str, Flight] = {}
        """Those that wait or run."""
        self.outcomes: list[Outcome] = []
        self.left: Callable[[Flight], None] = lambda flight: None  # called when one has ended
        self._flags, self._gateways, self._window_ms = flags, gateways, window_ms
        self._learning, self._fixed = learning, fixed
        self._waits, self._weights = waits or Waits(), weights or {}
        self._prompts = PromptText()
        self.fleet.at(0.0, self._look)

    @property
    def now_ms(self) -> int:
        """As the pool's store has it."""
        return int(self.fleet.now_ms)

    def plan(self, planned: PlannedRequest) -> None:
        """It arrives at its time."""
        outcome = Outcome(planned, end="timeout")
        self.outcomes.append(outcome)
        flight = Flight(planned, planned.number % self._gateways, outcome)
        self.fleet.at(planned.send_at_ms, partial(self._enter, flight))

    def generated(self, request: SimulatedRequest, now_ms: float) -> None:
        """See `Observer`."""
        flight = _flight(request)
        if flight.is_taken_back or flight.request is not request:
            return
        outcome = flight.outcome
        if self._window_ms[0] <= now_ms < self._window_ms[1]:
            self._count(flight, request)
        if outcome.last_token_at_ms is None:
            outcome.first_token_at_ms = flight.stretch_ms = now_ms
            self.pool.began(flight.id, now_ms=self.now_ms)
            self._tell()
        else:
            flight.stretch_tokens += 1
        outcome.last_token_at_ms = now_ms
        if self._learning and now_ms - flight.stretch_ms >= self._learning.rule.stretch_ms:
            self._sample(flight)

    def _count(self, flight: Flight, request: SimulatedRequest) -> None:
        planned = flight.planned
        self.counted.tokens[planned.traffic_class] += 1
        if self._weights:
            is_first = flight.outcome.last_token_at_ms is None
            uncached = planned.prompt_tokens - request.cached_tokens if is_first else 0
            self.counted.weighted[planned.tenant] += weighted_tokens(
                uncached_prompt_tokens=uncached, output_tokens=1
            )

    def ended(self, request: SimulatedRequest, reason: EndReason | None, now_ms: float) -> None:
        """See `Observer`."""
        flight = _flight(request)
        flight.request = None
        if flight.is_taken_back:
            flight.is_taken_back = False
            self._give_back(flight)
            return
        outcome = flight.outcome
        outcome.ended_at_ms, outcome.end = now_ms, ENDS[reason]
        outcome.output_tokens = request.generated
        self._sample(flight)
        place = self.pool.places[flight.id]
        if self._learning:
            learned = self._learning.learned[int(place.worker)]
            stay = Samples(learned.epoch, ended=1, stay_ms=int(now_ms - flight.granted_ms))
            self._learning.add(flight.gateway, int(place.worker), stay)
        uncached = flight.planned.prompt_tokens - request.cached_tokens
        cost = weighted_tokens(uncached_prompt_tokens=uncached, output_tokens=request.generated)
        self._over(flight)
        self.pool.leave(flight.id, actual_cost=cost, now_ms=self.now_ms)
        self._tell()

    def _enter(self, flight: Flight) -> None:
        planned, waits, now_ms = flight.planned, self._waits, self.now_ms
        is_batch = planned.traffic_class == "batch"
        wait_ms = waits.batch_ms if is_batch else waits.interactive_ms
        ticket = Ticket(
            id=flight.id,
            tenant=planned.tenant,
            gateway=str(flight.gateway),
            band=Band.BATCH if is_batch else Band.INTERACTIVE,
            sequences=1,
            need_tokens=planned.prompt_tokens + planned.output_tokens,
            cost=weighted_tokens(
                uncached_prompt_tokens=planned.prompt_tokens, output_tokens=planned.output_tokens
            ),
            weight=self._weights.get(planned.tenant, 1),
            entered_ms=now_ms,
            deadline_ms=now_ms + wait_ms,
            promote_ms=now_ms + wait_ms - (waits.promoted_before_ms if is_batch else 0),
        )
        self.flights[flight.id] = flight
        answer = self.pool.enter(ticket, max_queued=10**6, now_ms=now_ms)
        if isinstance(answer, Granted):
            self._send(flight, answer.worker)
        elif isinstance(answer, QueueFull | TooLong):
            self._refuse(flight)
        else:
            self.fleet.at(self.fleet.now_ms + wait_ms + 1, partial(self._expire, flight))
        self._tell()

    def _tell(self) -> None:
        """What the pool has to say reaches the gateways."""
        told, self.pool.messages = self.pool.messages, []
        for message in told:
            hear = self._granted if message.is_grant else self._taken_back
            flight = self.flights[message.ticket_id]
            self.fleet.at(self.fleet.now_ms + MESSAGE_MS, partial(hear, flight))

    def _granted(self, flight: Flight) -> None:
        if flight.id in self.flights and flight.request is None:
            answer = self.pool.take_up(flight.id, now_ms=self.now_ms)
            if isinstance(answer, Granted):
                self._send(flight, answer.worker)
            elif flight.id in self.pool.places:
                self._give_back(flight)
            self._tell()

    def _taken_back(self, flight: Flight) -> None:
        if flight.request is not None and flight.outcome.first_token_at_ms is None:
            flight.is_taken_back = True
            self.counted.taken_back += 1
            self.fleet.abort(flight.request)

    def _give_back(self, flight: Flight) -> None:
        self.pool.give_back(flight.id, now_ms=self.now_ms)
        self._tell()

    def _expire(self, flight: Flight) -> None:
        self.pool.tick(now_ms=self.now_ms)
        if flight.id not in self.pool.waiting and flight.id not in self.pool.places:
            self._refuse(flight)
        self._tell()

    def _refuse(self, flight: Flight) -> None:
        if flight.id in self.flights:
            self.counted.refused += 1
            flight.outcome.ended_at_ms, flight.outcome.end = self.fleet.now_ms, "unavailable"
            self._over(flight)

    def _over(self, flight: Flight) -> None:
        del self.flights[flight.id]
        self.left(flight)

    def _send(self, flight: Flight, worker: str) -> None:
        prompt, flight.granted_ms = self._prompts.token_ids(flight.planned), self.fleet.now_ms
        flight.request = simulated_request(flight.planned, prompt, flight, self._flags)
        self.fleet.arrive(flight.request, int(worker))

    def _sample(self, flight: Flight) -> None:
        """The stretch of the answer that ends now."""
        last_ms = flight.outcome.last_token_at_ms
        if self._learning is None or last_ms is None:
            return
        worker = self.pool.places[flight.id].worker
        samples = self._learning.rule.stretch(
            self._learning.learned[int(worker)],
            began_ms=int(flight.stretch_ms),
            ended_ms=int(last_ms),
            tokens=flight.stretch_tokens,
            running=self.pool.rooms[worker].running,
        )
        self._learning.add(flight.gateway, int(worker), samples)
        flight.stretch_ms, flight.stretch_tokens = last_ms, 0

    def _look(self) -> None:
        """Once a second: is anything waiting for a ceiling, and what are the ceilings now?"""
        for worker in range(len(self.fleet.replicas)):
            if self._learning:
                self._watch(worker, self._learning)
            ceilings = self._fixed
            if self._learning:
                ceilings = self._learning.ceilings(worker, self.now_ms)
            room = WorkerRoom(
                str(worker),
                ceilings.sequences_max,
                ceilings.batch_max,
                ceilings.tokens_max,
                self.now_ms + SEEN_MS,
            )
            self.pool.report(room, now_ms=self.now_ms)
        self._tell()
        self.fleet.at(self.fleet.now_ms + LOOK_MS, self._look)

    def _watch(self, worker: int, learning: Learning) -> None:
        room = self.pool.rooms.get(str(worker))
        if room is None:
            return
        here = Counter[int]()
        has_interactive = len(self.pool.lines[Band.INTERACTIVE]) > 0
        for place in self.pool.places.values():
            if place.ticket.band is Band.INTERACTIVE:
                has_interactive = True
            elif place.worker == room.id:
                here[int(place.ticket.gateway)] += 1
        for gateway in range(self._gateways):
            looked = learning.rule.look(
                learning.learned[worker],
                waiting=len(self.pool.lines[Band.INTERACTIVE]),
                batch_waiting=len(self.pool.lines[Band.BATCH]),
                running=room.running,
                batch_running=here[gateway],
            )
            seen_ms = self.now_ms if has_interactive else 0
            learning.add(gateway, worker, replace(looked, interactive_ms=seen_ms))
        learning.decide(worker, self.now_ms)


def _flight(request: SimulatedRequest) -> Flight:
    if not isinstance(request.owner, Flight):
        raise TypeError("a request that no gateway sent")
    return request.owner
