"""What a request will need: prompt tokens counted, output by its maximum or an expectation.

Where nobody has counted a prompt, two bounds are known of it: at least one token for so many
characters of text (media are no text), at most one for each byte, with a template's text. Then:

- what does not fit even by the lower bound is refused as what is counted is (400);
- what fits everything by the upper bound goes on;
- in between nothing is known. Where workers count but none can now (the request may go to a hosted
  provider) that is no final refusal and passes no limit either: 503 `no_worker`, until one can.
  Where all that are ready are of a kind that never counts, waiting does not help: what tenant and
  key set (the longest prompt, tokens a minute) is decided by the upper bound, which
  the refusal says; the context is left to the engine, which refuses what does not fit.

Tokens a minute count only with the client's maximum: without one a reservation is cut down to the
limit, and what the request uses beyond it is a debt.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.engine_facts import Need
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
SEQUENCES_MAX = 100
"""Choices of one request: an upstream id has two digits for them."""


@dataclass(frozen=True)
class Estimate:
    """Tokens of one request. `exact` says whether the prompt was counted by the engine's own
    tokenizer; otherwise it is an upper bound."""

    prompt_tokens: int
    prompt_counts: tuple[int | None, ...]
    """Of each prompt, None where only a bound is known."""
    exact: bool
    output_tokens: int
    """Expected output of all choices."""
    output_is_maximum: bool
    max_tokens: int
    """What the engine is told, each choice."""

    @property
    def need(self) -> Need | None:
        """What the largest of its sequences takes of a worker; None where that is not known."""
        if not self.exact:
            return None
        return Need(max(counted or 0 for counted in self.prompt_counts), self.max_tokens)

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


async def estimate(
    request: CompletionRequest,
    model: Model,
    caller: Caller,
    tokenizer: Tokenizer,
    workers: Sequence[WorkerView] = (),
) -> Estimate:
    """Count and check a request against model, limits and the workers that may take it.

    Raises ContextLengthExceeded where prompt plus maximum fit neither the model's context nor any
    of the engines, InvalidRequest where a limit is passed, Overloaded(no_worker) where neither can
    be told. Nothing of the client's is ever cut down silently; where it set no maximum the
    gateway's own default is reduced to what the roomiest engine holds.
    """
    if request.sequences > SEQUENCES_MAX:
        raise InvalidRequest(f"at most {SEQUENCES_MAX} choices in one request", param="n")
    fit = Fit(request, model, caller, [view.engine for view in workers])
    _check_certain(fit)
    counted = await tokenizer.count(request, caller.tenant.id)
    if counted is not None:
        fit.check(counted)
        counts, longest = counted, max(counted)
    else:
        counts = [size + TEMPLATE_TOKENS_BOUND for size in request.prompt_bytes]
        longest = _check_uncounted(fit, counts, workers)
    if request.max_tokens is not None:
        maximum = request.max_tokens
        expected = maximum
    else:
        room = fit.room(longest)
        maximum = min(model.max_output_tokens, room, fit.output_cap or room)
        expected = min(model.default_output_tokens, maximum)
    exact = counted is not None
    return Estimate(
        prompt_tokens=sum(counts),
        prompt_counts=tuple(counts) if exact else (None,) * len(counts),
        exact=exact,
        output_tokens=expected * request.sequences,
        output_is_maximum=request.max_tokens is not None,
        max_tokens=maximum,
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


def _fewest_prompt_tokens(request: CompletionRequest) -> list[int]:
    return [1 + size // TOKEN_CHARACTERS_MAX for size in request.prompt_characters]


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
    need = fewest_tokens(request)
    fit.check_tokens_a_minute(need, f"this request needs at least {need} tokens")
