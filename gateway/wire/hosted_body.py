"""What of a request a hosted provider is sent: OpenAI's own fields, none of the gateway's."""

import msgspec

from gateway.domain.hosted import HostedTarget
from gateway.wire.request import CompletionRequest, RawFields
from gateway.wire.seed import seed_of

OPENAI_FIELDS = frozenset({
    "messages", "prompt", "temperature", "top_p", "frequency_penalty", "presence_penalty", "seed",
    "stop", "logprobs", "top_logprobs", "tools", "tool_choice", "parallel_tool_calls",
    "response_format", "reasoning_effort", "suffix",
})  # fmt: skip
"""Fields that mean the same at every provider. `logit_bias` is not among them: its keys are tokens
of our model's vocabulary."""

HARMLESS: dict[str, frozenset[bytes]] = {
    "logit_bias": frozenset({b"{}"}),
    "echo": frozenset({b"false"}),
    "skip_special_tokens": frozenset({b"true"}),
    "no_stop_trim": frozenset({b"false"}),
    "separate_reasoning": frozenset({b"true"}),
    "stream_reasoning": frozenset({b"true"}),
    "continue_final_message": frozenset({b"false"}),
    "chat_template_kwargs": frozenset({b"{}"}),
    "stop_token_ids": frozenset({b"[]"}),
    "top_k": frozenset({b"-1"}),
    "min_p": frozenset({b"0", b"0.0"}),
    "min_tokens": frozenset({b"0"}),
    "repetition_penalty": frozenset({b"1", b"1.0"}),
}
"""Values that say what holds anyhow: left out, nothing is lost."""


def can_be_hosted(request: CompletionRequest, target: HostedTarget) -> bool:
    """Whether the provider understands every field that the tenant set: one left out would change
    the answer without a word."""
    return all(
        name in OPENAI_FIELDS or name in target.extensions or _is_harmless(name, raw)
        for name, raw in request.forward.items()
    )


def _is_harmless(name: str, raw: msgspec.Raw) -> bool:
    return b"".join(bytes(raw).split()) in HARMLESS.get(name, ())


def hosted_body(
    request: CompletionRequest,
    *,
    target: HostedTarget,
    prompt: int,
    max_tokens: int,
    sample: int = 0,
) -> bytes:
    """One choice as one stream, under the provider's name of the model."""
    fields: RawFields = {
        name: raw
        for name, raw in request.forward.items()
        if name in OPENAI_FIELDS or name in target.extensions
    }
    fields |= seed_of(request, sample)
    if request.endpoint == "completions":
        fields["prompt"] = request.prompts[prompt]
    limit_field = target.output_limit_field if request.endpoint == "chat" else "max_tokens"
    own: dict[str, object] = {
        "model": target.served_name,
        "stream": True,
        "stream_options": {"include_usage": True},
        limit_field: max_tokens,
    }
    for name, value in own.items():
        fields[name] = msgspec.Raw(msgspec.json.encode(value))
    return msgspec.json.encode(fields)
