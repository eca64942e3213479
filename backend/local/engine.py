"""The local engine: which request computes when, on top of a blocking library.

All bookkeeping happens on the event loop; a thread per running sequence only reads its chunks and
posts them there. One sequence at a time is in its prompt step; the next one waits for its first
chunk, and the rest decode together.
"""

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from backend.local.chat_template import render
from backend.local.model_file import find_model
from backend.local.runtime import Chunk, Runtime
from backend.local.settings import HONOURS, LocalSettings
from backend.sglang_http.engine import (
    EngineInfo,
    EngineUnavailable,
    GenerationRequest,
    Load,
    Message,
    Prompt,
    Sampling,
)
from backend.sglang_http.faults import FaultPlan
from backend.sglang_http.generation import FinishReason, Generation, TokenLogprob
from backend.sglang_http.latencies import Latencies
from backend.sglang_http.ledger import Ledger
from backend.sglang_http.live import LiveSequence, LiveSequences
from backend.sglang_http.refusals import EngineFailure, engine_broke, queue_full
from backend.sglang_http.throughput import Throughput

logger = logging.getLogger(__name__)

ABORT_WAIT_S = 0.2
"""How long an abort waits for the chunk that is being computed, to count it."""


@dataclass(slots=True, eq=False)
class LocalSequence:
    """A live sequence and its thread's flag to stop."""

    live: LiveSequence
    leaving: threading.Event


class LocalEngine:
    """Implements `sglang_http.engine.Engine` on the installed model."""

    def __init__(self, settings: LocalSettings) -> None:
        """Raises EngineUnavailable where the engine or the model is not installed."""
        self._file = find_model()
        self._settings = settings
        self.info = EngineInfo(
            name="local",
            description="SmolLM2-135M-Instruct on mistralrs, on the CPU",
            model=settings.model,
            model_path=self._file.filename,
            context_tokens=settings.context_tokens,
            max_running_requests=settings.max_running_requests,
            max_queued_requests=settings.max_queued_requests,
            # There is no KV pool: each running sequence has memory for a whole context.
            max_total_num_tokens=settings.max_running_requests * settings.context_tokens,
            # The model card's own advice.
            sampling_defaults={"temperature": 0.2, "top_p": 0.9},
            honours=HONOURS,
        )
        self.ready = False
        self.draining = False
        self.ledger = Ledger()
        self.latencies = Latencies()
        self.faults: FaultPlan | None = None
        self._live = LiveSequences(self.ledger, self.latencies)
        self._waiting: deque[LocalSequence] = deque()
        self._running: dict[LiveSequence, LocalSequence] = {}
        self._prompting: LocalSequence | None = None
        self._throughput = Throughput()
        self._tokenising = ThreadPoolExecutor(1, thread_name_prefix="tokenise")
        self._runtime: Runtime | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        """Load and warm up: the first steps of a fresh engine take far longer than later ones."""
        self._loop = asyncio.get_running_loop()
        try:
            self._runtime = await asyncio.to_thread(self._load)
        except (ValueError, OSError, ImportError, EngineFailure) as error:
            raise EngineUnavailable(f"the local engine does not start: {error}") from error
        self.ready = True

    async def stop(self) -> None:
        """Abort everything. A prompt step that runs goes on in its thread, a daemon."""
        self.ready = False
        self.abort("", abort_all=True)
        self._tokenising.shutdown(wait=False, cancel_futures=True)

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
        """Whether something runs."""
        return self.ledger.running > 0

    async def encode_chat(
        self, messages: Sequence[Message], *, continue_final: bool, enough: int | None = None
    ) -> Prompt:
        """Apply the model's chat template."""
        return await self.encode_text(render(messages, continue_final=continue_final))

    async def encode_text(self, text: str, *, enough: int | None = None) -> Prompt:
        """The model's own tokens."""
        runtime = self._loaded()
        loop = asyncio.get_running_loop()
        tokens = await loop.run_in_executor(self._tokenising, runtime.tokenise, text)
        return Prompt(text, tuple(tokens))

    def decode(self, tokens: Sequence[int]) -> Prompt | None:
        """The library takes text only."""
        return None

    def refuse(self, request: GenerationRequest) -> str | None:
        """What the library cannot carry out."""
        sampling = request.sampling
        if not request.prompt.tokens:
            return "Prompt cannot be empty."
        if sampling.max_tokens < 1:
            return "max_tokens must be at least 1 on this worker."
        if sampling.seed is not None and sampling.temperature:
            return "seed is not supported by this worker above temperature 0."
        return None

    def submit(self, request: GenerationRequest) -> Generation:
        """Run it, or queue it. Raises Refused for a rid that is alive."""
        live = self._live.add(request)
        limit = self._settings.max_queued_requests
        if limit is not None and len(self._waiting) >= limit and not self._may_start():
            self._live.reject(live, queue_full())
        else:
            self._waiting.append(LocalSequence(live, threading.Event()))
            self._dispatch()
        return live.generation

    def abort(self, rid: str, *, abort_all: bool = False) -> None:
        """Stop every sequence whose rid starts with `rid`.

        A decoding one ends with the chunk that is being computed. One in its prompt step cannot be
        interrupted: its stream ends at once, and it counts as running until the step is over.
        """
        for live in self._live.matching(rid, abort_all=abort_all):
            running = self._running.get(live)
            if running is None:
                self._waiting = deque(each for each in self._waiting if each.live is not live)
                self._live.end(live, FinishReason.ABORT)
            elif not running.leaving.is_set():
                running.leaving.set()
                if self._loop is not None:
                    self._loop.call_later(ABORT_WAIT_S, self._live.end, live, FinishReason.ABORT)

    def load(self) -> Load:
        """What runs and waits now."""
        return Load(
            running=self.ledger.running,
            waiting=len(self._waiting),
            waiting_uncached_tokens=sum(len(w.live.request.prompt.tokens) for w in self._waiting),
            used_tokens=sum(live.held_tokens for live in self._running),
            cached_tokens=None,
            gen_throughput=self._throughput.per_second(),
        )

    def published(self) -> Load:
        """The same: it is live."""
        return self.load()

    def flush_cache(self) -> bool:
        """There is no cache to flush; False where something runs, as SGLang answers."""
        return not (self._running or self._waiting)

    def _load(self) -> Runtime:
        runtime = Runtime(
            self._file,
            threads=self._settings.threads,
            max_running=self._settings.max_running_requests,
        )
        prompt = Prompt("Once upon a time", ())
        warm_up = GenerationRequest("warm-up", prompt, Sampling(4, temperature=0.0), stream=True)
        for _ in runtime.generate(warm_up):
            pass
        return runtime

    def _loaded(self) -> Runtime:
        if self._runtime is None:
            raise engine_broke()
        return self._runtime

    def _may_start(self) -> bool:
        return self._prompting is None and len(self._running) < self._settings.max_running_requests

    def _dispatch(self) -> None:
        """Let the next one into its prompt step, if none is in it and there is a place."""
        while self._waiting and self._may_start():
            sequence = self._waiting.popleft()
            self._prompting = sequence
            self._running[sequence.live] = sequence
            self._live.start(sequence.live)
            name = f"sequence-{sequence.live.request.rid}"
            threading.Thread(target=self._read, args=(sequence,), name=name, daemon=True).start()

    def _read(self, sequence: LocalSequence) -> None:
        """In a thread: post one sequence's chunks to the loop until it ends or is to leave."""
        failure: EngineFailure | None = None
        scanner = sequence.live.scanner
        try:
            for chunk in self._loaded().generate(sequence.live.request):
                shown, matched = scanner.push(chunk.text)
                if chunk.finish_reason is not None and matched is None:
                    shown += scanner.flush()
                self._post(self._on_chunk, sequence, chunk, shown, matched)
                if matched is not None or sequence.leaving.is_set():
                    break
        except EngineFailure as error:
            failure = error
        except BaseException as error:  # noqa: BLE001 - a panic of the library must free the place
            # The error's text could hold a prompt; its type cannot.
            logger.error("the engine library failed: %s", type(error).__name__)
            failure = engine_broke()
        self._post(self._on_left, sequence, failure)

    def _post(self, callback: Callable[..., None], *arguments: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the worker stops
                self._loop.call_soon_threadsafe(callback, *arguments)

    def _on_chunk(
        self, sequence: LocalSequence, chunk: Chunk, shown: str, matched: str | None
    ) -> None:
        if self._prompting is sequence:
            self._prompting = None
            self._dispatch()
        logprobs: tuple[TokenLogprob, ...] = () if chunk.logprob is None else (chunk.logprob,)
        generation, tokens = sequence.live.generation, 1
        if chunk.usage is not None:
            # What is still incomplete at the end had no chunk of its own.
            tokens = max(1, chunk.usage.completion_tokens - generation.completion_tokens)
        self._throughput.add(tokens)
        generation.push(shown, tokens, logprobs)
        if matched is not None:
            self._live.end(
                sequence.live, FinishReason.STOP, matched_stop=matched, usage=chunk.usage
            )
        elif chunk.finish_reason is not None:
            length = chunk.finish_reason == "length"
            reason = FinishReason.LENGTH if length else FinishReason.STOP
            self._live.end(sequence.live, reason, usage=chunk.usage)

    def _on_left(self, sequence: LocalSequence, failure: EngineFailure | None) -> None:
        """The thread is through with it: its place is free."""
        del self._running[sequence.live]
        self._live.pause(sequence.live)
        if self._prompting is sequence:
            self._prompting = None
        if failure is not None:
            self._live.fail(sequence.live, failure)
        elif sequence.leaving.is_set():
            self._live.end(sequence.live, FinishReason.ABORT)
        else:
            # Ended by the engine already, unless it closed the stream without a finish.
            self._live.fail(sequence.live, engine_broke())
        self._dispatch()
