"""What a request will need: prompt tokens counted, output by its maximum or an expectation."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.engine_facts import EngineFacts, Need
from gateway.domain.scopes import scopes_of
from gateway.domain.tenant import Limits, Model
from gateway.errors import ContextLengthExceeded, InvalidRequest
from gateway.serving.authenticate import Caller
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
    engines: Sequence[EngineFacts] = (),
) -> Estimate:
    """Count and check a request against model, limits and the engines that may take it.

    Raises ContextLengthExceeded where prompt plus maximum fit neither the model's context nor any
    of the engines, InvalidRequest where a limit on prompt or output is passed. Nothing of the
    client's is ever cut down silently; where it set no maximum the gateway's own default is
    reduced to what the roomiest engine holds.
    """
    if request.sequences > SEQUENCES_MAX:
        raise InvalidRequest(f"at most {SEQUENCES_MAX} choices in one request", param="n")
    _check_certain(request, model, caller)
    counted = await tokenizer.count(request, caller.tenant.id)
    exact = counted is not None
    counts = counted or [size + TEMPLATE_TOKENS_BOUND for size in request.prompt_bytes]
    longest = max(counts)
    prompt_tokens = sum(counts)
    room = _room(model, engines, longest if exact else 0)
    if room < 1:
        raise ContextLengthExceeded(
            f"the prompt has {longest} tokens; {_held(model, engines)} with the output, "
            f"and a prompt has at most {_longest_prompt(model, engines)}",
            param="messages" if request.endpoint == "chat" else "prompt",
        )
    output_cap = _smallest_cap(caller)
    _check_limits(request, caller, prompt_tokens if exact else 0, output_cap)
    if request.max_tokens is not None:
        if request.max_tokens > room:
            raise ContextLengthExceeded(
                f"{longest} prompt tokens and up to {request.max_tokens} output tokens do not "
                f"fit: {_held(model, engines)}, so there is room for {room} output tokens",
                param="max_tokens",
            )
        maximum = request.max_tokens
        expected = maximum
    else:
        maximum = min(model.max_output_tokens, room, output_cap or room)
        expected = min(model.default_output_tokens, maximum)
    return Estimate(
        prompt_tokens=prompt_tokens,
        prompt_counts=tuple(counts) if exact else (None,) * len(counts),
        exact=exact,
        output_tokens=expected * request.sequences,
        output_is_maximum=request.max_tokens is not None,
        max_tokens=maximum,
    )


def _room(model: Model, engines: Sequence[EngineFacts], prompt_tokens: int) -> int:
    """Output tokens that fit after the prompt on the roomiest engine."""
    most = max((engine.output_room(prompt_tokens) for engine in engines), default=None)
    context = model.context_tokens - prompt_tokens
    return context if most is None else min(context, most)


def _longest_prompt(model: Model, engines: Sequence[EngineFacts]) -> int:
    most = max((engine.longest_prompt for engine in engines), default=model.context_tokens)
    return min(model.context_tokens - 1, most)


def _held(model: Model, engines: Sequence[EngineFacts]) -> str:
    holds = _room(model, engines, 0)
    if holds >= model.context_tokens:
        return f"the context of {model.id} holds {model.context_tokens} tokens"
    return f"a worker of {model.id} holds {holds} tokens"


def fewest_tokens(request: CompletionRequest) -> int:
    """What the request uses at the very least, known without counting."""
    prompts = sum(1 + size // TOKEN_CHARACTERS_MAX for size in request.prompt_characters)
    return prompts + (request.max_tokens or 1) * request.sequences


def _check_certain(request: CompletionRequest, model: Model, caller: Caller) -> None:
    """Refuse what cannot fit however it is counted: counting it would cost others their turn."""
    longest = max(request.prompt_characters) // TOKEN_CHARACTERS_MAX
    if longest >= model.context_tokens:
        raise ContextLengthExceeded(
            f"the prompt has over {longest} tokens; the context of {model.id} holds "
            f"{model.context_tokens} with the output",
            param="messages" if request.endpoint == "chat" else "prompt",
        )
    need = fewest_tokens(request)
    for scope in scopes_of(caller.tenant, caller.key, request.model):
        if scope.tpm is not None and need > scope.tpm:
            raise InvalidRequest(
                f"this request needs at least {need} tokens; the limit of the "
                f"{scope.shown} is {scope.tpm} a minute, so it can never be admitted"
            )


def _limits(caller: Caller) -> tuple[tuple[str, Limits], ...]:
    return (("tenant", caller.tenant.limits), ("key", caller.key.limits))


def _smallest_cap(caller: Caller) -> int | None:
    caps = [
        limits.max_output_tokens
        for _, limits in _limits(caller)
        if limits.max_output_tokens is not None
    ]
    return min(caps, default=None)


def _check_limits(
    request: CompletionRequest, caller: Caller, prompt_tokens: int, output_cap: int | None
) -> None:
    for scope, limits in _limits(caller):
        limit = limits.max_prompt_tokens
        if limit is not None and prompt_tokens > limit:
            raise InvalidRequest(
                f"the prompt has {prompt_tokens} tokens; the {scope}'s limit is {limit}",
                param="messages" if request.endpoint == "chat" else "prompt",
            )
    if output_cap is not None and (output_cap == 0 or (request.max_tokens or 0) > output_cap):
        raise InvalidRequest(
            f"at most {output_cap} output tokens are allowed a choice", param="max_tokens"
        )
