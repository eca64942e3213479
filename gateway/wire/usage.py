"""Reading the usage of any OpenAI-compatible engine or provider as one thing: disjoint kinds that
add up to what it counted itself.

OpenAI's meaning is the canonical one: `prompt_tokens` includes what was cached, `completion_tokens`
what was spent on reasoning, and `total_tokens` is their sum. SGLang, vLLM, Groq and DeepSeek follow
it; xAI and Gemini leave reasoning out of `completion_tokens`, others leave cached tokens out of
`prompt_tokens`. No provider's name decides: where the total says more than the two, the kind that
explains the difference was left out. Cache writes, where a provider counts them, are prompt like
any other.

Each count is read by itself: one that is none (negative, beyond a record, a text) is absent and
flagged, and takes none of the others with it. Then the total explains nothing any more: what an
account with nonsense in it leaves out is for the gateway to count.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from gateway.wire.request import RawFields

COUNT_MAX = 2**31 - 1
"""The largest count that a usage record holds."""


class Usage(msgspec.Struct, frozen=True):
    """An engine's count, cumulative within one stream. None is what it did not say; 0 is 0."""

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens found in the prefix cache."""
    reasoning_tokens: int | None = None
    """Of the output, spent on reasoning."""
    out_of_range: bool = False
    """A count was none that can be, and is absent."""
    inferred: bool = False
    """A count is not as it was said, but what the total makes of it."""
    fell: bool = False
    """A count that can only grow was less than it had been."""

    def merged(self, later: "Usage") -> "Usage":
        """What is known once `later` was said in the same stream: its counts, and this one's where
        it says none. The last one holds, also where it is less; then it is marked."""
        fell = (
            self.fell
            or _less(later.output_tokens, self.output_tokens)
            or _less(later.prompt_tokens, self.prompt_tokens)
            or _less(later.reasoning_tokens, self.reasoning_tokens)
        )
        whole = later.filled(self)
        return msgspec.structs.replace(whole, fell=True) if fell else whole

    def filled(self, other: "Usage") -> "Usage":
        """This, with the other's counts where it has none. The other's marks count with them, and
        where a prompt or an output is still unknown."""
        prompt, output = self.prompt_tokens, self.output_tokens
        cached, reasoning = self.cached_tokens, self.reasoning_tokens
        is_whole = prompt is not None and output is not None
        takes_cached = cached is None and other.cached_tokens is not None
        takes_reasoning = reasoning is None and other.reasoning_tokens is not None
        if is_whole and not takes_cached and not takes_reasoning:
            return self
        return Usage(
            other.prompt_tokens if prompt is None else prompt,
            other.output_tokens if output is None else output,
            other.cached_tokens if cached is None else cached,
            other.reasoning_tokens if reasoning is None else reasoning,
            out_of_range=self.out_of_range or other.out_of_range,
            inferred=self.inferred or other.inferred,
            fell=self.fell or other.fell,
        )


def _less(said: int | None, known: int | None) -> bool:
    return said is not None and known is not None and said < known


_Count = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: _Count | None = None


class _CompletionDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: _Count | None = None


class _Counts(msgspec.Struct, frozen=True):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    total_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None
    """SGLang says it at the top."""
    cached_tokens: _Count | None = None
    """Moonshot says it at the top."""
    prompt_cache_hit_tokens: _Count | None = None
    """DeepSeek's name for it."""


class _Said(_Counts, frozen=True):
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


# Read with every chunk: a decoder that is made once costs a twentieth of one made for each.
_DECODER = msgspec.json.Decoder(_Said)
_FIELDS = msgspec.json.Decoder(RawFields)
_NUMBER = msgspec.json.Decoder(int | float)
_NULL = msgspec.Raw(b"null")


def read_usage(raw: msgspec.Raw) -> Usage | None:
    """The usage in a field of a chunk; None where there is none, or it is no object."""
    if bytes(raw) == b"null":
        return None
    try:
        return _understood(_DECODER.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return _each_by_itself(raw)


def _understood(said: _Said) -> Usage:
    usage = _as_said(said)
    return usage if said.total_tokens is None else _completed(usage, said.total_tokens)


def _as_said(said: _Said) -> Usage:
    return Usage(said.prompt_tokens, said.completion_tokens, _cached(said), _reasoning(said))


def _each_by_itself(raw: msgspec.Raw) -> Usage | None:
    """What can be understood of an object in which something is no count, or no integer."""
    try:
        fields = _FIELDS.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    counts, odd = _readable(fields, _Counts.__struct_fields__)
    cached, odd_cached = _details(fields, "prompt_tokens_details", "cached_tokens")
    reasoning, odd_reasoning = _details(fields, "completion_tokens_details", "reasoning_tokens")
    said = _Said(
        **counts,
        prompt_tokens_details=_PromptDetails(**cached),
        completion_tokens_details=_CompletionDetails(**reasoning),
    )
    if odd or odd_cached or odd_reasoning:
        return msgspec.structs.replace(_as_said(said), out_of_range=True)
    return _understood(said)


def _details(fields: RawFields, name: str, count: str) -> tuple[dict[str, int], bool]:
    raw = fields.get(name, _NULL)
    if bytes(raw) == b"null":
        return {}, False
    try:
        return _readable(_FIELDS.decode(raw), (count,))
    except (msgspec.DecodeError, RecursionError):
        return {}, True


def _readable(fields: RawFields, names: Iterable[str]) -> tuple[dict[str, int], bool]:
    """The counts among so many fields, and whether any of them is none."""
    counts: dict[str, int] = {}
    odd = False
    for name in names:
        raw = fields.get(name, _NULL)
        if bytes(raw) == b"null":
            continue
        try:
            number = _NUMBER.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            number = -1
        if 0 <= number <= COUNT_MAX and number == int(number):
            counts[name] = int(number)
        else:
            odd = True
    return counts, odd


def _cached(said: _Said) -> int | None:
    details = said.prompt_tokens_details
    nested = details.cached_tokens if details is not None else None
    named = (nested, said.cached_tokens, said.prompt_cache_hit_tokens)
    return next((count for count in named if count is not None), None)


def _reasoning(said: _Said) -> int | None:
    details = said.completion_tokens_details
    nested = details.reasoning_tokens if details is not None else None
    return nested or (nested if said.reasoning_tokens is None else said.reasoning_tokens)


def _completed(usage: Usage, total: int) -> Usage:
    """With what the total adds to it."""
    prompt, output = usage.prompt_tokens, usage.output_tokens
    cached, reasoning = usage.cached_tokens or 0, usage.reasoning_tokens or 0
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
        prompt_tokens=prompt,
        output_tokens=output,
        reasoning_tokens=reasoning or usage.reasoning_tokens,
        inferred=True,
    )
