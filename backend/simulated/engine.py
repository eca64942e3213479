"""The simulated engine: requests into the scheduler, and its tokens out of it."""

import asyncio
import contextlib
from collections.abc import Sequence

from backend.sglang_http.engine import EngineInfo, GenerationRequest, Load, Message, Prompt
from backend.sglang_http.faults import FaultPlan
from backend.sglang_http.generation import FinishReason, Generation
from backend.sglang_http.latencies import Latencies
from backend.sglang_http.ledger import Ledger
from backend.sglang_http.live import LiveSequences
from backend.sglang_http.refusals import Refused, queue_full, thrown_out
from backend.sglang_http.throughput import Throughput
from backend.simulated import vocabulary
from backend.simulated.arrivals import Arrivals
from backend.simulated.clock import Clock
from backend.simulated.delivery import Delivery
from backend.simulated.replica import Replica
from backend.simulated.request import EndReason, SimulatedRequest
from backend.simulated.sequence import SimulatedSequence, simulated_sequence
from backend.simulated.settings import SimulatedSettings
from backend.simulated.snapshots import Snapshots
from backend.simulated.stepping import Stepper

HONOURS = frozenset(
    {"seed", "ignore_eos", "top_k", "min_p", "min_tokens", "continue_final_message"}
)
LEAVE_POLL_S = 4.0
"""How often SGLang looks whether who waits for a whole answer is still there."""


class SimulatedEngine:
    """Implements `sglang_http.engine.Engine` without a model, over one replica of its own."""

    def __init__(self, settings: SimulatedSettings) -> None:
        self._settings = settings
        self.info = _info(settings)
        self.ready = False
        self.draining = False
        self.ledger = Ledger()
        self.faults = FaultPlan()
        self.latencies = Latencies(settings.speed)
        self.replica = Replica(settings.profile.step, settings.flags)
        """The scheduler; its totals are what it has computed."""
        self._clock = Clock(settings.speed)
        self._arrivals = Arrivals()
        self._throughput = Throughput()
        self._live = LiveSequences(self.ledger, self.latencies, interval=settings.stream_interval)
        self._delivery = Delivery(self.replica, self._live, self._throughput)
        self._stepper = Stepper(
            self.replica, self._clock, self._arrivals, self.faults, self._step_ended
        )
        self._stepper.let_in = self._let_in
        self._stepper.began = self._note_begun
        self._snapshots = Snapshots(self.replica, self.info, self._stepper)
        self.faults.on_stale = self._keep_load
        self.faults.on_change = self._faults_changed
        self._loop: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to serve, after the start-up that was asked for."""
        await asyncio.sleep(self._settings.start_up_ms / 1000 / self._settings.speed)
        self._loop = asyncio.create_task(self._stepper.run(), name="simulated-steps")
        self.ready = True

    async def stop(self) -> None:
        """Abort everything and stop stepping."""
        self.ready = False
        if self._loop is not None:
            self._loop.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loop
        for live in self._live:
            self._live.end(live, FinishReason.ABORT)

    @property
    def live_requests(self) -> int:
        """How many have not ended."""
        return len(self._live)

    @property
    def tokens_generated(self) -> int:
        """Since the start."""
        return self._throughput.total

    @property
    def generating(self) -> bool:
        """Whether a batch runs; what a fault has taken out of it does not."""
        return self.replica.load().running > 0

    async def encode_chat(
        self, messages: Sequence[Message], *, continue_final: bool, enough: int | None = None
    ) -> Prompt:
        """Apply the simulated chat template."""
        text = vocabulary.chat_text(messages, continue_final=continue_final)
        return await vocabulary.encode_in_turns(text, enough)

    async def encode_text(self, text: str, *, enough: int | None = None) -> Prompt:
        """Tokens of plain text."""
        return await vocabulary.encode_in_turns(text, enough)

    def decode(self, tokens: Sequence[int]) -> Prompt | None:
        """Token ids are as good as text here. Raises Refused outside the vocabulary."""
        if tokens and not 0 <= min(tokens) <= max(tokens) < vocabulary.VOCABULARY_SIZE:
            raise Refused("A token id is outside the vocabulary.")
        return Prompt("", tuple(tokens))

    def refuse(self, request: GenerationRequest) -> str | None:
        """Only a prompt without a token."""
        return None if request.prompt.tokens else "Prompt cannot be empty."

    def submit(self, request: GenerationRequest) -> Generation:
        """Let it into the front end, and a little later into the queue. Raises Refused for a rid
        that is alive."""
        live = self._live.add(request)
        if request.fault is not None and request.fault.kind == "queue_full":
            self._live.reject(live, queue_full())
            return live.generation
        due_ms = self._clock.of(request.arrived_s) + self._settings.profile.front_end_ms
        self._arrivals.add(due_ms, simulated_sequence(live, self._settings))
        self._stepper.wake()
        return live.generation

    def abort(self, rid: str, *, abort_all: bool = False) -> None:
        """Stop every sequence whose rid starts with `rid`: what waits at once, what runs with the
        step in flight."""
        aborted = {id(live) for live in self._live.matching(rid, abort_all=abort_all)}
        if not aborted:
            return
        for sequence in self._arrivals.remove(aborted):
            self._live.end(sequence.live, FinishReason.ABORT)
        now_ms = self._clock.now_ms()
        for sequence in self._delivery.of(aborted):
            self._delivery.abort(sequence, now_ms, at_once=self.faults.stalls)
        self._stepper.wake()

    def load(self) -> Load:
        """Now."""
        return self._snapshots.live(self._delivery.lingering)

    def published(self) -> Load:
        """The replica's last snapshot, or an older one where a fault keeps it."""
        keep = self.faults.stale is not None
        return self._snapshots.published(self._delivery.lingering, keep=keep)

    def flush_cache(self) -> bool:
        """Forget cached prefixes, unless something runs or waits."""
        return not len(self._live) and self.replica.flush_cache()

    def _keep_load(self) -> None:
        self._snapshots.keep(self._delivery.lingering)

    def _faults_changed(self) -> None:
        """The step in flight may stand still now: who is to leave with it does not wait for it."""
        if self.faults.stalls:
            self._delivery.end_aborted()
        self._stepper.faults_changed()

    def _let_in(self, sequence: SimulatedSequence, due_ms: float) -> None:
        """From the front end into the queue."""
        request = sequence.request
        sequence.live.generation.course.entered_ns = self._clock.unix_ns(due_ms)
        refused = self.replica.submit(request, due_ms)
        if refused is not request:
            self._delivery.add(sequence)
        if refused is None:
            return
        owner = refused.owner
        assert isinstance(owner, SimulatedSequence)  # noqa: S101 # all are ours
        self._delivery.reject(owner, queue_full() if refused is request else thrown_out())

    def _note_begun(self) -> None:
        """A step began: who lost a place in the batch, and who was taken from the queue."""
        for request in self.replica.lost_places:
            owner = request.owner
            assert isinstance(owner, SimulatedSequence)  # noqa: S101 # all are ours
            if not owner.live.generation.ended:
                self._live.pause(owner.live)
                self._delivery.waiting[request] = owner
        placed = [each for each in self._delivery.waiting if each.placed]
        for request in placed:
            sequence = self._delivery.waiting.pop(request)
            if sequence.live.generation.course.started_ns is not None:
                self._live.resume(sequence.live)
                continue
            self._live.start(sequence.live, self._clock.unix_ns(request.started_ms or 0.0))
            if self._settings.reports_cache:
                sequence.live.generation.cached_tokens = request.cached_tokens

    def _step_ended(
        self,
        generated: list[SimulatedRequest],
        ended: list[tuple[SimulatedRequest, EndReason]],
        now_ms: float,
    ) -> None:
        self._delivery.step(generated, ended, now_ms)
        if self._stepper.decoded:
            self.latencies.inter_token.observe(self._stepper.gap_ms / 1000, self._stepper.decoded)
        self._snapshots.look()


def _info(settings: SimulatedSettings) -> EngineInfo:
    flags = settings.flags
    return EngineInfo(
        name="simulated",
        description="simulated worker: no model, every figure is simulated",
        model=settings.model,
        model_path="simulated",
        context_tokens=flags.context_length,
        max_running_requests=flags.max_running_requests,
        max_queued_requests=flags.max_queued_requests,
        max_total_num_tokens=flags.max_total_tokens,
        honours=HONOURS,
        settings=settings.shown(),
        reports_cache=settings.reports_cache,
        leave_poll_s=LEAVE_POLL_S,
        clock_speed=settings.speed,
        knows_ids=True,
    )
