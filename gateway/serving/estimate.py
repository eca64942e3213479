"""What a request will need: prompt tokens counted or bounded, output by its maximum or an
expectation.

Two bounds are known of a prompt without counting it: at least one token for so many characters of
text (media are no text), at most one for each byte, with a template's text (media have no such
bound). What is decided by which:

- What does not fit even by the lower bound is refused uncounted (400): counting it would cost
  others their turn. So is a maximum over a limit on output.
- **Where no scope limits tokens a minute or money, and the upper bound fits everything**, the
  prompt is not counted at all: context, every engine and every limit on the length of a prompt,
  with the whole maximum, so that nothing comes out otherwise than by a count. Its reservation is
  too high until it is settled, which nobody can be refused for.
- **Where a scope does limit them it is counted, however much room there seems to be.** A
  reservation by bytes is some four times too high. It would admit nothing wrongly (INV-3), but
  until it is settled, for minutes of a long stream, others of the tenant were refused for tokens
  that nobody uses: a refusal that rests on no count.
- A limit that is just being set may be known to the store before this gateway knows it. So a
  refusal of something uncounted is not told: it is counted and asked for once more
  (`serving/admit.py`).
- Where nobody can count, what fits everything by the upper bound goes on. In between the bounds
  nothing is known: where workers count but none can now (the request may go to a hosted provider)
  that is no final refusal and passes no limit either: 503 `no_worker`, until one can. Where all
  that are ready are of a kind that never counts, waiting does not help: what the scopes allow (the
  longest prompt, tokens a minute) is decided by the upper bound, which the refusal says; the
  context is left to the engine, which refuses what does not fit.

Tokens a minute count only with the client's maximum: without one a reservation is cut down to the
limit, and what the request uses beyond it is a debt, as are the tokens of media that no tokenizer
counts (S14). Money is never a debt: for media all that the context holds is reserved of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.engine_facts import Need
from gateway.domain.expected_output import ExpectedOutput
from gateway.domain.tenant import EngineKind, Model
from gateway.domain.worker import WorkerView
from gateway.errors import ContextLengthExceeded, InvalidRequest, Overloaded
from gateway.serving.authenticate import Caller
from gateway.serving.fit import Fit
from gateway.serving.ports import Tokenizer
from gateway.wire.request import CompletionRequest

TEMPLATE_TOKENS_BOUND = 256
"""More than a chat template adds to one conversation beside its text and tools."""
TOKEN_CHARACTERS_MAX = 256
"""Longer than the longest token of the vocabularies in use (128 spaces): so many characters are at
least one token, which refuses what is far too long without counting it."""
BYTES_A_TOKEN = 4
"""Of English text in the vocabularies in use, about."""
SEQUENCES_MAX = 100
"""Choices of one request: an upstream id has two digits for them."""


UPSTREAM_BYTES_MAX = 128 * 1024 * 1024
"""Of all choices' bodies together: each is sent the whole prompt, and held until it is sent."""


@dataclass(frozen=True)
class Estimate:
    """Tokens of one request. `exact` says whether the prompt was counted by the engine's own
    tokenizer; otherwise it is an upper bound."""

    prompt_tokens: int
    prompt_counts: tuple[int | None, ...]
    """Of each prompt, None where only a bound is known."""
    exact: bool
    sequences: int
    output_tokens: int
    """Expected output of all choices."""
    output_is_maximum: bool
    max_tokens: int
    """What the engine is told, each choice."""
    media_tokens: int = 0
    """What media may add to the prompt at most; no reservation of tokens covers it."""
    spared: bool = False
    """Whether it was not counted because nothing depended on it; it still can be."""

    @property
    def need(self) -> Need | None:
        """What the largest of its sequences takes of a worker; None where every worker holds it,
        or nobody knows."""
        if not self.exact:
            return None
        return Need(max(counted or 0 for counted in self.prompt_counts), self.max_tokens)

    @property
    def likely_prompt_tokens(self) -> int:
        """As counted; else a guess from its bytes, which nobody is refused or billed by."""
        return self.prompt_tokens if self.exact else max(1, self.prompt_tokens // BYTES_A_TOKEN)

    @property
    def tokens(self) -> int:
        """What the request is expected to use, and reserves where its limits have room."""
        return self.prompt_tokens + self.output_tokens

    @property
    def floor_tokens(self) -> int:
        """What must be reserved at least. With a maximum that is all it may use, so that no limit
        is passed, also where the prompt is only bounded; without one, what it uses at least."""
        if self.output_is_maximum:
            return self.tokens
        return (self.prompt_tokens if self.exact else len(self.prompt_counts)) + 1

    @property
    def is_bounded(self) -> bool:
        """Whether it can use no more than `tokens`."""
        return self.output_is_maximum and not self.media_tokens

    @property
    def prompt_tokens_max(self) -> int:
        """No fewer than its prompts turn out to have, each counted once."""
        return self.prompt_tokens + self.media_tokens

    @property
    def output_tokens_max(self) -> int:
        """The most that all its choices generate."""
        return self.max_tokens * self.sequences


async def estimate(
    request: CompletionRequest,
    model: Model,
    caller: Caller,
    tokenizer: Tokenizer,
    workers: Sequence[WorkerView] = (),
    *,
    learned: ExpectedOutput | None = None,
) -> Estimate:
    """Check a request against model, limits and the workers that may take it, and count it where
    something depends on the count.

    Raises ContextLengthExceeded where prompt plus maximum fit neither the model's context nor any
    of the engines, InvalidRequest where a limit is passed, Overloaded(no_worker) where neither can
    be told. Nothing of the client's is ever cut down silently; where it set no maximum the
    gateway's own default is reduced to what the roomiest engine holds.
    """
    fit = fit_of(request, model, caller, workers)
    found = uncounted(fit, workers, learned)
    return found or await counted(fit, workers, tokenizer, learned)


def fit_of(
    request: CompletionRequest, model: Model, caller: Caller, workers: Sequence[WorkerView]
) -> Fit:
    """What a request is checked against, with what is certain of it refused."""
    if request.sequences > SEQUENCES_MAX:
        raise InvalidRequest(f"at most {SEQUENCES_MAX} choices in one request", param="n")
    if sum(request.prompt_bytes) * request.choices_per_prompt > UPSTREAM_BYTES_MAX:
        raise InvalidRequest(
            f"{request.choices_per_prompt} choices of so long a prompt are over "
            f"{UPSTREAM_BYTES_MAX} bytes together",
            param="n",
        )
    fit = Fit(request, model, caller, [view.engine for view in workers])
    _check_certain(fit)
    return fit


def uncounted(
    fit: Fit, workers: Sequence[WorkerView], learned: ExpectedOutput | None = None
) -> Estimate | None:
    """The estimate of a request whose count nothing depends on; None where something does, or where
    no worker is there that could count it afterwards."""
    most = _most_prompt_tokens(fit.request)
    countable = any(view.worker.kind is EngineKind.SGLANG for view in workers)
    if not countable or fit.request.has_media or fit.counts_tokens or not fit.holds_at_most(most):
        return None
    return _estimated(fit, most, max(most), learned, spared=True)


async def counted(
    fit: Fit,
    workers: Sequence[WorkerView],
    tokenizer: Tokenizer,
    learned: ExpectedOutput | None = None,
) -> Estimate:
    """The estimate of a request by its count, or by bounds where nobody counts. Raises as
    `estimate` does."""
    counts = await tokenizer.count(fit.request, fit.caller.tenant.id)
    if counts is not None:
        fit.check(counts)
        return _estimated(fit, counts, max(counts), learned, exact=True)
    most = _most_prompt_tokens(fit.request)
    return _estimated(fit, most, _check_uncounted(fit, most, workers), learned)


def _estimated(
    fit: Fit,
    counts: Sequence[int],
    longest: int,
    learned: ExpectedOutput | None,
    *,
    exact: bool = False,
    spared: bool = False,
) -> Estimate:
    request, model = fit.request, fit.model
    maximum = expected = fit.whole_maximum
    if request.max_tokens is None:
        maximum = min(maximum, fit.room(longest))
        expected = model.default_output_tokens
        if learned is not None:
            expected = learned.tokens(fit.caller.tenant.id, model.id, default=expected)
        expected = min(expected, maximum)
    prompt_tokens = sum(counts)
    return Estimate(
        prompt_tokens=prompt_tokens,
        prompt_counts=tuple(counts) if exact else (None,) * len(counts),
        exact=exact,
        sequences=request.sequences,
        output_tokens=expected * request.sequences,
        output_is_maximum=request.max_tokens is not None,
        max_tokens=maximum,
        media_tokens=max(0, model.context_tokens - prompt_tokens) if request.has_media else 0,
        spared=spared,
    )


def _check_uncounted(fit: Fit, most: Sequence[int], workers: Sequence[WorkerView]) -> int:
    """Check a request by the bounds of its prompts, `most` the upper ones. Returns the tokens of
    the longest prompt to keep room for."""
    request, model = fit.request, fit.model.id
    least = _fewest_prompt_tokens(request)
    fit.check(least, at_least=True)
    # Without a maximum a reservation is cut down to the limit, so that none has to be refused.
    needed = 0 if request.max_tokens is None else sum(most) + request.max_tokens * request.sequences
    if workers and all(view.worker.kind is EngineKind.OPENAI for view in workers):
        has = f"the prompt may have up to {sum(most)} tokens, which no worker of {model} counts"
        fit.check_prompt_limits(sum(most), has)
        needs = f"this request may need up to {needed} tokens: no worker of {model} counts them"
        fit.check_tokens_a_minute(needed, needs)
        return max(least)
    try:
        fit.check(most)
        fit.check_tokens_a_minute(needed, "")
    except InvalidRequest:
        raise Overloaded(
            f"the prompt cannot be counted while no worker of {model} is ready, and without that "
            "nobody can tell whether it fits",
            code="no_worker",
        ) from None
    return max(most)


def fewest_tokens(request: CompletionRequest) -> int:
    """What the request uses at the very least, known without counting."""
    return sum(_fewest_prompt_tokens(request)) + (request.max_tokens or 1) * request.sequences


def may_never_fit(fit: Fit) -> bool:
    """Whether a count may show that the request exceeds the context or a limit itself: a 400, for
    which waiting does not help."""
    request = fit.request
    if request.has_media:
        return True
    most = _most_prompt_tokens(request)
    output = 1 if request.max_tokens is None else request.max_tokens * request.sequences
    try:
        fit.check(most)
        fit.check_tokens_a_minute(sum(most) + output, "")
    except InvalidRequest:
        return True
    return False


def _fewest_prompt_tokens(request: CompletionRequest) -> list[int]:
    return [1 + size // TOKEN_CHARACTERS_MAX for size in request.prompt_characters]


def _most_prompt_tokens(request: CompletionRequest) -> list[int]:
    sizes = zip(request.prompt_bytes, request.prompt_growth_bytes, strict=True)
    return [size + growth + TEMPLATE_TOKENS_BOUND for size, growth in sizes]


def _check_certain(fit: Fit) -> None:
    """Refuse what cannot fit however it is counted: counting it would cost others their turn."""
    request, model = fit.request, fit.model
    longest = max(request.prompt_characters) // TOKEN_CHARACTERS_MAX
    if longest >= model.context_tokens:
        raise ContextLengthExceeded(
            f"the prompt has over {longest} tokens; the context of {model.id} holds "
            f"{model.context_tokens} with the output",
            param="messages" if request.endpoint == "chat" else "prompt",
        )
    fit.check_output_limits()
    need = fewest_tokens(request)
    fit.check_tokens_a_minute(need, f"this request needs at least {need} tokens")
