"""What one request measured, and whether it met its targets.

TTFT, TPOT and ITL are the glossary's; TPOT is SGLang's `bench_serving`'s and MLPerf's too. They
count from the *intended* send time, so that a stalled target or generator delays nothing out of
the figures (coordinated omission; the rule is wrk2's).
"""

import msgspec

from backend.loadtest.run import Outcome

SHORT_PROMPT_TOKENS = 4_000
"""DESIGN's interactive target on TTFT is for prompts under this."""


class GoodputTargets(msgspec.Struct, frozen=True, kw_only=True):
    """What each request must meet to count as goodput. The defaults are the interactive class's."""

    ttft_ms: float = 800.0
    tpot_ms: float = 40.0
    prompt_tokens_under: int | None = None
    """The TTFT target is for prompts of fewer planned tokens; None: for every prompt."""


def ttft_ms(outcome: Outcome) -> float | None:
    """Intended send → first token; None without a token."""
    if outcome.first_token_at_ms is None:
        return None
    return outcome.first_token_at_ms - outcome.planned.send_at_ms


def counted_by_events(outcome: Outcome) -> bool:
    """Whether it ended whole with content of which the target gave no number of tokens."""
    streamed = outcome.first_token_at_ms is not None
    return finished(outcome) and streamed and outcome.output_tokens == 0


def tokens_out(outcome: Outcome) -> int:
    """Output tokens as the target counts them; of a whole answer that does not say, its content
    events, which are the fewest that they can have been."""
    return len(outcome.gaps_ms) + 1 if counted_by_events(outcome) else outcome.output_tokens


def tpot_ms(outcome: Outcome) -> float | None:
    """(last token − first token) / (output tokens − 1); None below two tokens."""
    first, last = outcome.first_token_at_ms, outcome.last_token_at_ms
    tokens = tokens_out(outcome)
    if first is None or last is None or tokens < 2:
        return None
    return (last - first) / (tokens - 1)


def e2e_ms(outcome: Outcome) -> float | None:
    """Intended send → end; None where the end was never seen."""
    if outcome.ended_at_ms is None:
        return None
    return outcome.ended_at_ms - outcome.planned.send_at_ms


def finished(outcome: Outcome) -> bool:
    """Whether it ended whole."""
    return outcome.end == "ok"


def met_ttft(outcome: Outcome, targets: GoodputTargets) -> bool:
    """Whether its first token came in time, or it is too long a prompt to be asked that. Without
    a token it did not."""
    ttft = ttft_ms(outcome)
    under = targets.prompt_tokens_under
    exempt = under is not None and outcome.planned.prompt_tokens >= under
    return ttft is not None and (exempt or ttft <= targets.ttft_ms)


def met_tpot(outcome: Outcome, targets: GoodputTargets) -> bool:
    """Whether its tokens came fast enough. A single token has no TPOT and passes."""
    tpot = tpot_ms(outcome)
    return tpot is None or tpot <= targets.tpot_ms


def good(outcome: Outcome, targets: GoodputTargets) -> bool:
    """Whether it ended whole and met every target. What failed or was refused is bad."""
    return finished(outcome) and met_ttft(outcome, targets) and met_tpot(outcome, targets)
