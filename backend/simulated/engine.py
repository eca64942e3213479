"""The simulated engine: one step loop computes prompts and decodes the whole batch, in real time.

It keeps the order of things of a continuously batching engine (queue, prompt step, decode steps,
prefix cache, KV pool) and none of its arithmetic. KV memory is reserved for a request's whole
maximum when it starts, so nothing is ever retracted.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Sequence

from backend.sglang_http.engine import EngineInfo, GenerationRequest, Load, Message, Prompt
from backend.sglang_http.faults import FaultPlan
from backend.sglang_http.generation import FinishReason, Generation
from backend.sglang_http.ledger import Ledger
from backend.sglang_http.live import LiveSequences
from backend.sglang_http.refusals import Refused, queue_full
from backend.sglang_http.throughput import Throughput
from backend.simulated import vocabulary
from backend.simulated.prefix_cache import PrefixCache
from backend.simulated.sequence import SimulatedSequence, simulated_sequence
from backend.simulated.settings import SimulatedSettings

HONOURS = frozenset({"seed", "ignore_eos", "top_k", "min_p", "continue_final_message"})


class SimulatedEngine:
    """Implements `sglang_http.engine.Engine` without a model."""

    def __init__(self, settings: SimulatedSettings) -> None:
        self._settings = settings
        self.info = EngineInfo(
            name="simulated",
            description="simulated worker: no model, every figure is simulated",
            model=settings.model,
            model_path="simulated",
            context_tokens=settings.context_tokens,
            max_running_requests=settings.max_running_requests,
            max_queued_requests=settings.max_queued_requests,
            max_total_num_tokens=settings.kv_tokens,
            honours=HONOURS,
        )
        self.ready = False
        self.ledger = Ledger()
        self.faults = FaultPlan()
        self._live = LiveSequences(self.ledger)
        self._waiting: deque[SimulatedSequence] = deque()
        self._running: list[SimulatedSequence] = []
        self._reserved_tokens = 0
        self._cache = PrefixCache(settings.kv_tokens)
        self._throughput = Throughput()
        self._work = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to step."""
        self._loop = asyncio.create_task(self._step_forever(), name="simulated-steps")
        self.ready = True

    async def stop(self) -> None:
        """Abort everything and stop stepping."""
        self.ready = False
        self.abort("", abort_all=True)
        if self._loop is not None:
            self._loop.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loop

    async def encode_chat(self, messages: Sequence[Message], *, continue_final: bool) -> Prompt:
        """Apply the simulated chat template."""
        return vocabulary.encode_chat(messages, continue_final=continue_final)

    async def encode_text(self, text: str) -> Prompt:
        """Tokens of plain text."""
        return vocabulary.encode(text)

    def decode(self, tokens: Sequence[int]) -> Prompt | None:
        """Token ids are as good as text here. Raises Refused outside the vocabulary."""
        if any(not 0 <= token < vocabulary.VOCABULARY_SIZE for token in tokens):
            raise Refused("A token id is outside the vocabulary.")
        return Prompt("", tuple(tokens))

    def refuse(self, request: GenerationRequest) -> str | None:
        """A prompt that the KV pool can never hold is refused; a maximum beyond it is clamped."""
        prompt, pool = len(request.prompt.tokens), self._settings.kv_tokens
        if prompt >= pool:
            return (
                f"Input length ({prompt} tokens) exceeds the maximum allowed length "
                f"({pool - 1} tokens)."
            )
        return None

    def submit(self, request: GenerationRequest) -> Generation:
        """Queue it; the next step may take it. Raises Refused for a rid that is alive."""
        live = self._live.add(request)
        limit = self._settings.max_queued_requests
        full = limit is not None and len(self._waiting) >= limit
        if full or (request.fault is not None and request.fault.kind == "queue_full"):
            self._live.reject(live, queue_full())
        else:
            self._waiting.append(simulated_sequence(live, self._settings))
            self._work.set()
        return live.generation

    def abort(self, rid: str, *, abort_all: bool = False) -> None:
        """Stop at once every sequence whose rid starts with `rid`."""
        aborted = {id(live) for live in self._live.matching(rid, abort_all=abort_all)}
        if not aborted:
            return
        for sequence in [each for each in self._running if id(each.live) in aborted]:
            self._leave(sequence, FinishReason.ABORT)
        for sequence in [each for each in self._waiting if id(each.live) in aborted]:
            self._waiting.remove(sequence)
            self._live.end(sequence.live, FinishReason.ABORT)

    def load(self) -> Load:
        """What runs and waits now."""
        return Load(
            running=len(self._running),
            waiting=len(self._waiting),
            waiting_uncached_tokens=sum(len(w.live.request.prompt.tokens) for w in self._waiting),
            used_tokens=sum(sequence.live.held_tokens for sequence in self._running),
            cached_tokens=len(self._cache),
            gen_throughput=self._throughput.per_second(),
        )

    def flush_cache(self) -> bool:
        """Forget cached prefixes, unless something runs or waits."""
        if self._running or self._waiting:
            return False
        self._cache.clear()
        return True

    async def _step_forever(self) -> None:
        due = time.monotonic()
        while True:
            if not (self._running or self._waiting):
                self._work.clear()
                await self._work.wait()
                due = time.monotonic()
            self._admit()
            decoding = [sequence for sequence in self._running if not sequence.prompt_left]
            computed, prefilled = self._prefill()
            due = max(due, time.monotonic() - 0.1) + self._step_us(computed, len(decoding)) / 1e6
            # Also a step that is late yields, or the HTTP side would starve.
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            for sequence in decoding + prefilled:
                if not sequence.live.generation.ended:
                    self._generate(sequence)

    def _step_us(self, prompt_tokens: int, decoding: int) -> int:
        settings = self._settings
        decode_us = settings.step_base_us + settings.step_us_per_sequence * decoding
        return (
            prompt_tokens * settings.prefill_us_per_token + (decode_us if decoding else 0) or 1000
        )

    def _admit(self) -> None:
        """Start waiting sequences in order while there are places and KV memory for them."""
        while self._waiting and len(self._running) < self._settings.max_running_requests:
            sequence = self._waiting[0]
            if self._reserved_tokens + sequence.reserved_tokens > self._settings.kv_tokens:
                return
            self._waiting.popleft()
            self._reserved_tokens += sequence.reserved_tokens
            self._running.append(sequence)
            self._live.start(sequence.live)
            request = sequence.live.request
            cached = self._cache.match(request.salt_digest, request.prompt.tokens)
            sequence.live.generation.cached_tokens = cached
            sequence.prompt_left = max(1, len(request.prompt.tokens) - cached)

    def _prefill(self) -> tuple[int, list[SimulatedSequence]]:
        """Compute prompts in order up to the chunk size. Returns how many tokens that is, and the
        sequences whose prompt is complete with it."""
        left = self._settings.prefill_chunk_tokens
        complete = []
        for sequence in self._running:
            taken = min(left, sequence.prompt_left)
            if not taken:
                continue
            sequence.prompt_left -= taken
            left -= taken
            if not sequence.prompt_left:
                complete.append(sequence)
                request = sequence.live.request
                self._cache.insert(request.salt_digest, request.prompt.tokens)
        self._cache.shrink(self._settings.kv_tokens - self._reserved_tokens)
        return self._settings.prefill_chunk_tokens - left, complete

    def _generate(self, sequence: SimulatedSequence) -> None:
        """One decode step of one sequence."""
        live, generation = sequence.live, sequence.live.generation
        position = generation.completion_tokens
        if position >= sequence.max_tokens:
            self._leave(sequence, FinishReason.LENGTH)
            return
        if sequence.held_back():
            return
        self._throughput.add(1)
        if position >= sequence.natural_end and not live.request.sampling.ignore_eos:
            generation.push(live.scanner.flush(), 1)
            self._leave(sequence, FinishReason.STOP, vocabulary.END_OF_TEXT_ID)
            return
        shown, matched = live.scanner.push(vocabulary.token_text(sequence.text_key, position))
        generation.push(shown, 1)
        if matched is not None:
            self._leave(sequence, FinishReason.STOP, matched)
        elif position + 1 >= sequence.max_tokens:
            self._leave(sequence, FinishReason.LENGTH)

    def _leave(
        self,
        sequence: SimulatedSequence,
        reason: FinishReason,
        matched_stop: str | int | None = None,
    ) -> None:
        """Free its place and memory, and end it."""
        self._running.remove(sequence)
        self._reserved_tokens -= sequence.reserved_tokens
        self.ledger.left()
        if reason is FinishReason.LENGTH:
            sequence.live.generation.push(sequence.live.scanner.flush(), 0)
        self._live.end(sequence.live, reason, matched_stop=matched_stop)
