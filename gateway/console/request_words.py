"""What a request's record says in codes, in words."""

from billing.domain.usage_record import Outcome, UsageSource

OUTCOMES = {
    Outcome.COMPLETED: "completed",
    Outcome.CLIENT_CANCELLED: "cancelled by the client",
    Outcome.WORKER_FAILED: "the worker failed",
    Outcome.TIMED_OUT: "took too long",
    Outcome.REFUSED: "refused by the engine",
    Outcome.GATEWAY_LOST: "its gateway was lost",
    Outcome.TAKEN_BACK: "gave its place to an interactive request",
}
OUTCOME_KINDS = {
    Outcome.COMPLETED: "good",
    Outcome.CLIENT_CANCELLED: "plain",
    Outcome.TIMED_OUT: "warn",
    Outcome.REFUSED: "warn",
    Outcome.TAKEN_BACK: "plain",
}
SOURCES = {
    UsageSource.ENGINE_FINAL: "The engine's own final count.",
    UsageSource.ENGINE_PROGRESS: "The last count that the engine sent before the stream broke: at "
    "least so many.",
    UsageSource.COUNTED: "Counted by the gateway from what it passed on: at least so many.",
    UsageSource.ESTIMATED: "Nothing was heard from the engine: the prompt is as admission counted "
    "it, and no output is counted.",
}
FLAGS = {
    "cached_over_prompt": "the engine said more cached tokens than the prompt has",
    "cached_unknown": "the engine did not say how much was cached",
    "count_out_of_range": "a count was out of every range and was cut",
    "cut_short": "the stream ended before its finish",
    "finish_unknown": "the engine did not say why it finished",
    "prompt_counted": "the prompt is as the gateway counted it",
    "prompt_over_count": "the engine counted a longer prompt than the gateway",
    "prompt_unknown": "nobody counted the prompt",
    "rated_later": "the price was written after the request had ended",
    "reasoning_over_output": "the engine said more reasoning tokens than output has",
}


def outcome_text(outcome: str) -> str:
    """In words; a code that a newer release wrote stays as it is."""
    try:
        return OUTCOMES[Outcome(outcome)]
    except ValueError:
        return outcome


def outcome_kind(outcome: str) -> str:
    """The badge's."""
    try:
        return OUTCOME_KINDS.get(Outcome(outcome), "bad")
    except ValueError:
        return "plain"


def source_text(source: str) -> str:
    """Where the counts come from."""
    try:
        return SOURCES[UsageSource(source)]
    except ValueError:
        return source


def flag_text(flag: str) -> str:
    """One oddity."""
    return FLAGS.get(flag, flag)
