"""Reading the usage of any OpenAI-compatible engine or provider as one thing: disjoint kinds that
add up to what it counted itself.

OpenAI's meaning is the canonical one: `prompt_tokens` includes what was cached, `completion_tokens`
what was spent on reasoning, and `total_tokens` is their sum. SGLang, vLLM, Groq and DeepSeek follow
it; xAI and Gemini leave reasoning out of `completion_tokens`, others leave cached tokens out of
`prompt_tokens`. No provider's name decides: where the total says more than the two, the kind that
explains the difference was left out. Cache writes, where a provider counts them, are prompt like
any other.
"""

import msgspec

COUNT_MAX = 2**31 - 1
"""The largest count that a usage record holds."""


class Usage(msgspec.Struct, frozen=True):
    """An engine's count, cumulative within one stream. None is what it did not say; 0 is 0."""

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens found in the prefix cache."""
    reasoning_tokens: int = 0
    """Of the output, spent on reasoning."""
    out_of_range: bool = False
    """A count was negative or absurd and has been clamped."""
    inferred: bool = False
    """A count is not as it was said, but what the total makes of it."""


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Said(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    reasoning_tokens: int | None = None
    """SGLang says it at the top."""
    cached_tokens: int | None = None
    """Moonshot says it at the top."""
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek's name for it."""


# Read with every chunk: a decoder that is made once costs a twentieth of one made for each.
_DECODER = msgspec.json.Decoder(_Said)


def read_usage(raw: msgspec.Raw) -> Usage | None:
    """The usage in a field of a chunk; None where there is none, or none that can be read."""
    if bytes(raw) == b"null":
        return None
    try:
        return _understood(_DECODER.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return None


def _understood(said: _Said) -> Usage:
    counts = (
        said.prompt_tokens,
        said.completion_tokens,
        said.total_tokens,
        _cached(said),
        _reasoning(said),
    )
    prompt, output, total, cached, reasoning = held = tuple(map(_held, counts))
    usage = Usage(prompt, output, cached, reasoning or 0, out_of_range=held != counts)
    return usage if total is None else _completed(usage, total)


def _cached(said: _Said) -> int | None:
    details = said.prompt_tokens_details
    nested = details.cached_tokens if details is not None else None
    named = (nested, said.cached_tokens, said.prompt_cache_hit_tokens)
    return next((count for count in named if count is not None), None)


def _reasoning(said: _Said) -> int:
    details = said.completion_tokens_details
    nested = details.reasoning_tokens if details is not None else None
    return nested or said.reasoning_tokens or 0


def _completed(usage: Usage, total: int) -> Usage:
    """With what the total adds to it."""
    prompt, output = usage.prompt_tokens, usage.output_tokens
    cached, reasoning = usage.cached_tokens or 0, usage.reasoning_tokens
    if prompt is None or output is None:
        if prompt is not None and total >= prompt:
            output = total - prompt
        elif output is not None and total >= output:
            prompt = total - output
        else:
            return usage
        return msgspec.structs.replace(
            usage, prompt_tokens=prompt, output_tokens=output, inferred=True
        )
    missing = total - prompt - output
    if missing <= 0:
        return usage
    if missing == cached + reasoning:
        prompt, output = prompt + cached, output + reasoning
    elif missing == cached != reasoning or prompt < cached <= prompt + missing:
        prompt += missing
    else:
        # Reasoning, said or (Gemini) not: nothing else is generated and not shown.
        output += missing
        reasoning = max(reasoning, missing)
    return msgspec.structs.replace(
        usage,
        prompt_tokens=min(prompt, COUNT_MAX),
        output_tokens=min(output, COUNT_MAX),
        reasoning_tokens=min(reasoning, COUNT_MAX),
        inferred=True,
    )


def _held(count: int | None) -> int | None:
    return None if count is None else min(max(count, 0), COUNT_MAX)
