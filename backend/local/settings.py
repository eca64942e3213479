"""How the local engine runs, and what it can carry out."""

from dataclasses import dataclass

from backend.local.runtime import CONTEXT_TOKENS

HONOURS = frozenset(
    {
        "top_k",
        "min_p",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
        "seed",
        "logit_bias",
        "ignore_eos",
        "regex",
        "json_schema",
        "logprobs",
        "continue_final_message",
    }
)
"""Fields of a request beyond the basic ones that it carries out."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How the local engine runs."""

    model: str = "smollm2-135m"
    context_tokens: int = CONTEXT_TOKENS
    max_running_requests: int = 8
    max_queued_requests: int | None = None
    threads: int = 1
    """Threads of computation. More than there are idle cores is much slower than one."""
