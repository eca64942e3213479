"""What an engine is to the HTTP surface."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from backend.sglang_http.faults import Fault, FaultPlan
from backend.sglang_http.generation import Generation
from backend.sglang_http.latencies import Latencies
from backend.sglang_http.ledger import Ledger

SGLANG_VERSION = "0.5.23"
"""The SGLang whose HTTP is spoken here."""


class Message(msgspec.Struct, frozen=True):
    """One chat message, its content already plain text."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as the engine will read it: text after the chat template, and its tokens."""

    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose tokens. None means that the engine's own default applies."""

    max_tokens: int
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    logit_bias: dict[int, float] | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0
    """It does not end by itself before so many."""
    regex: str | None = None
    json_schema: str | None = None
    top_logprobs: int | None = None
    """How many alternatives to report per token; None is no log probabilities at all."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One sequence to generate."""

    rid: str
    prompt: Prompt
    sampling: Sampling
    stream: bool
    cache_salt: str = ""
    """Prompts of different salts never share cached prefixes, where the engine can keep apart."""
    extra_key: str = ""
    """It keeps prefixes apart as the salt does."""
    priority: int | None = None
    fault: Fault | None = None
    """A failure to show while running it."""
    health: bool = False
    """The worker asks itself, for `/health`; no total counts it."""
    arrived_s: float = field(default_factory=time.monotonic)
    """When its HTTP request arrived, on the monotonic clock."""

    @property
    def salt_digest(self) -> bytes:
        """A short stand-in for salt and extra key, which are somebody's secrets; empty where there
        is neither."""
        if not (self.cache_salt or self.extra_key):
            return b""
        salt = self.cache_salt.encode()
        # No salt may be taken for another salt and its key.
        both = b"%d %b %b" % (len(salt), salt, self.extra_key.encode())
        return hashlib.blake2b(both, digest_size=8).digest()


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What does not change while a worker lives."""

    name: str
    """`local` or `simulated`: shown wherever the worker describes itself."""
    description: str
    model: str
    model_path: str
    context_tokens: int
    max_running_requests: int
    max_queued_requests: int | None
    max_total_num_tokens: int
    """Size of the KV pool, or the bound that the engine's own limits add up to."""
    sampling_defaults: dict[str, float] = field(default_factory=dict)
    honours: frozenset[str] = frozenset()
    """Request fields beyond the basic ones that this engine carries out. A request that sets
    another one is refused, never served as if it had not."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """What else `/server_info` says, under SGLang's names where it has them."""
    reports_cache: bool = True
    """Whether answers say how much of a prompt was cached."""
    leave_poll_s: float = 0.0
    """A client that waits for a whole answer is seen to have left so often; 0 is at once."""
    clock_speed: float = 1.0
    """Its seconds in a real one."""
    knows_ids: bool = False
    """Whether it knows its output's token ids, without which there is no `/generate`."""

    @property
    def max_req_len(self) -> int:
        """SGLang's bound of prompt and output together, one below context and KV pool."""
        return min(self.context_tokens, self.max_total_num_tokens) - 1

    @property
    def max_req_input_len(self) -> int:
        """SGLang's bound of a prompt, which must be shorter."""
        return self.max_req_len - 5


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What only an engine with a scheduler of its own can say of its load."""

    at_s: float
    """When this was so, Unix seconds."""
    cache_hit_rate: float
    retracted: int
    """Requests in the queue that had lost their place."""
    active_tokens: int
    """Of running requests, what waits included."""
    available_tokens: int
    """Free places of the KV pool."""
    prefill_tokens: int
    """Computed so far, without what was cached."""
    prefill_busy_us: int
    decode_moments: tuple[float, ...]
    """Sums over decode steps: 1, sequences, context, sequences squared, sequences times context,
    tokens generated."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """Further counters of `/metrics`: name without prefix and its value."""
    gauges: Mapping[str, float] = field(default_factory=dict)
    lag_ms: float = 0.0
    """How late its steps end, where it is simulated: the 95th percentile of the last seconds."""


@dataclass(frozen=True, slots=True)
class Load:
    """What runs and waits."""

    running: int
    waiting: int
    waiting_uncached_tokens: int
    used_tokens: int
    """KV tokens of running requests."""
    cached_tokens: int | None
    """Tokens that only the prefix cache holds, evictable; None where the engine does not say."""
    gen_throughput: float
    """Output tokens per second over the last seconds."""
    scheduled: Scheduled | None = None


class Engine(Protocol):
    """One model that generates. Everything is called on the event loop and returns quickly."""

    @property
    def info(self) -> EngineInfo: ...

    @property
    def ready(self) -> bool:
        """Whether requests are answered now."""

    draining: bool
    """It is about to end: `/health` says so, requests are answered all the same."""

    @property
    def ledger(self) -> Ledger: ...

    @property
    def latencies(self) -> Latencies: ...

    @property
    def live_requests(self) -> int:
        """How many have not ended."""

    @property
    def tokens_generated(self) -> int:
        """Since the start."""

    @property
    def generating(self) -> bool:
        """Whether something runs of which more tokens are to come."""

    @property
    def faults(self) -> FaultPlan | None:
        """Failures to show on command; None where this engine offers none."""

    async def start(self) -> None:
        """Load and warm up; `ready` afterwards. Raises EngineUnavailable with one line why not."""

    async def stop(self) -> None:
        """Abort what still runs and release everything."""

    async def encode_chat(
        self, messages: Sequence[Message], *, continue_final: bool, enough: int | None = None
    ) -> Prompt:
        """Apply the chat template. With `continue_final` the last message stays open. From `enough`
        tokens on the engine may leave the rest out."""

    async def encode_text(self, text: str, *, enough: int | None = None) -> Prompt:
        """Plain text. From `enough` tokens on the engine may leave the rest out."""

    def decode(self, tokens: Sequence[int]) -> Prompt | None:
        """A prompt given as token ids; None where the engine takes only text. Raises Refused."""

    def refuse(self, request: GenerationRequest) -> str | None:
        """Why this engine cannot carry out the request as asked, or None."""

    def submit(self, request: GenerationRequest) -> Generation:
        """Run it, or queue it. Raises Refused where the rid is alive already."""

    def abort(self, rid: str, *, abort_all: bool = False) -> None:
        """Stop every live request whose rid starts with `rid`, as SGLang's scheduler matches."""

    def load(self) -> Load:
        """Now."""

    def published(self) -> Load:
        """As `/v1/loads` has it, which may lag."""

    def flush_cache(self) -> bool:
        """Forget cached prefixes; False where something runs or the engine cannot."""


class EngineUnavailable(Exception):
    """The engine cannot run here; the message is one line for the operator."""
