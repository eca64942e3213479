"""What a request's record says in codes, in words."""

from billing.domain.usage_record import Outcome, UsageFlag, UsageSource

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
FLAGS: dict[str, str] = {
    UsageFlag.CACHED_OVER_PROMPT: "the engine said more cached tokens than the prompt has",
    UsageFlag.CACHED_UNKNOWN: "the engine did not say how much was cached",
    UsageFlag.COUNT_INFERRED: "the engine's counts did not add up to its total, which is taken as "
    "right",
    UsageFlag.COUNT_OUT_OF_RANGE: "a count was out of every range and was cut",
    UsageFlag.CUT_SHORT: "the stream ended before its finish",
    UsageFlag.END_UNKNOWN: "nobody knows how it ended: its gateway was lost while it ran",
    UsageFlag.FINISH_UNKNOWN: "the engine did not say why it finished",
    UsageFlag.PROMPT_COUNTED: "the prompt is as the gateway counted it",
    UsageFlag.PROMPT_OVER_COUNT: "the engine counted a longer prompt than the gateway",
    UsageFlag.PROMPT_UNKNOWN: "nobody counted the prompt",
    UsageFlag.RATED_LATER: "the price was written after the request had ended",
    UsageFlag.REAPED: "another gateway wrote it in the place of one that was lost",
    UsageFlag.REASONING_OVER_OUTPUT: "the engine said more reasoning tokens than output has",
    UsageFlag.SENT_DIRECTLY: "its gateway could not write it to its disk, and sent it at once",
    UsageFlag.SIMULATED: "made up for a demonstration",
    UsageFlag.USAGE_FELL: "the engine took back some of what it had counted",
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
