"""One choice of an answer, and all that was seen of its streams."""

from collections.abc import Callable
from dataclasses import dataclass, field

from billing.domain.usage_record import Outcome, UsageAttempt, UsageSource
from gateway.domain.engine_facts import Need
from gateway.domain.hosted import HostedTarget
from gateway.domain.tenant import Worker
from gateway.wire.upstream import Event
from gateway.wire.usage import Usage

FINISH_REASON_CHARACTERS_MAX = 64
FAILURES = frozenset({"abort", "error"})
"""Finish reasons that end no answer: SGLang's of a stream that was aborted, and what other engines
say of one that they could not go on with."""
ENDS = frozenset({"stop", "length", "tool_calls", "function_call", "content_filter"})
"""OpenAI's finish reasons of an answer. Any other word that is no failure ends one too (an engine
may have its own for "stop"), and is flagged."""
UNPRINTABLE = "unprintable"
"""What is recorded of a finish reason that no text column takes."""


@dataclass
class Choice:
    """One choice of an answer, and all that was seen of its stream."""

    index: int
    prompt: int
    body: Callable[[Worker, int], tuple[str, bytes]]
    """The upstream id and body of an attempt on a worker."""
    need: Need | None = None
    """What a worker must be able to hold to take it."""
    worker: Worker | None = None
    attempts: int = 0
    ended_attempts: list[UsageAttempt] = field(default_factory=list)
    usage: Usage | None = None
    usage_is_final: bool = False
    """The output was said after all of it had come."""
    usage_is_closed: bool = False
    """The engine summed up behind its last choice, where it says what it had cached."""
    deltas: int = 0
    deltas_when_said: int = 0
    """How many of them had come when the output was last said."""
    finish_reason: str | None = None
    first_token_us: int | None = None
    last_token_us: int | None = None
    gap_us_max: int = 0
    attempt_started_ms: int = 0
    provider_request_id: str | None = None
    cut_short: bool = False
    """The engine said that the maximum was reached when it was not: it had no room for it."""

    @property
    def finished(self) -> bool:
        """Whether the engine said how it ended, and that is an answer's end."""
        return self.finish_reason is not None and not self.failed and not self.cut_short

    @property
    def failed(self) -> bool:
        """Whether the engine said that it did not come to the answer's end."""
        return self.finish_reason in FAILURES

    @property
    def ended_oddly(self) -> bool:
        """Whether it finished with a word that is none of OpenAI's."""
        return self.finished and self.finish_reason not in ENDS

    @property
    def began(self) -> bool:
        """Whether the engine took up its prompt, as far as the stream shows."""
        return self.deltas > 0 or self.finished

    @property
    def output_tokens(self) -> int:
        """As the engine last said or, where it did not or that was before more came, the deltas
        seen: a lower bound."""
        said = self._said
        if said is None:
            return self.deltas
        return max(said, self.deltas) if self.deltas > self.deltas_when_said else said

    @property
    def source(self) -> UsageSource:
        """Where its count of the output comes from."""
        said = self._said
        if said is None:
            return UsageSource.COUNTED if self.began else UsageSource.ESTIMATED
        if self.output_tokens > said:
            return UsageSource.COUNTED
        return UsageSource.ENGINE_FINAL if self.usage_is_final else UsageSource.ENGINE_PROGRESS

    @property
    def cached_is_unknown(self) -> bool:
        """Whether an engine of ours said all but what it had cached: the account that says so did
        not come."""
        return (
            self.usage_is_final
            and self.usage is not None
            and self.usage.cached_tokens is None
            and not self.usage_is_closed
            and not isinstance(self.worker, HostedTarget)
        )

    @property
    def _said(self) -> int | None:
        return None if self.usage is None else self.usage.output_tokens

    def note(self, event: Event, now_us: int) -> None:
        """Count an event."""
        if event.finish_reason is not None:
            reason = event.finish_reason[:FINISH_REASON_CHARACTERS_MAX]
            self.finish_reason = reason if reason.isprintable() else UNPRINTABLE
        if event.has_content:
            self.deltas += 1
            self.usage_is_final = False
            if self.first_token_us is None:
                self.first_token_us = now_us
            if self.last_token_us is not None:
                self.gap_us_max = max(self.gap_us_max, now_us - self.last_token_us)
            self.last_token_us = now_us
        if event.usage is not None:
            self._note_usage(event, event.usage)

    def _note_usage(self, event: Event, said: Usage) -> None:
        self.usage = said if self.usage is None else self.usage.merged(said)
        self.usage_is_closed = self.usage_is_closed or not event.has_choice
        if said.output_tokens is not None:
            self.usage_is_final = not event.has_choice or self.finish_reason is not None
            self.deltas_when_said = self.deltas

    def begin_attempt(self, worker: Worker, now_ms: int) -> None:
        """A stream is opened on this worker; what an earlier one said counts no more."""
        self.worker = worker
        self.attempts += 1
        self.attempt_started_ms = now_ms
        self.usage, self.usage_is_final, self.finish_reason = None, False, None
        self.usage_is_closed = False
        self.provider_request_id, self.cut_short = None, False

    def begin_anew(self) -> None:
        """Its request gave its place back: what was seen of it counts no more. Attempts do."""
        self.worker = None
        self.usage, self.usage_is_final, self.finish_reason = None, False, None
        self.usage_is_closed = False
        self.deltas = self.deltas_when_said = self.gap_us_max = 0
        self.first_token_us = self.last_token_us = None
        self.provider_request_id, self.cut_short = None, False

    def take_back_attempt(self) -> None:
        """Nothing was sent: there was no attempt, and nobody has the tenant's data."""
        self.worker = None

    def end_attempt(
        self, outcome: Outcome, now_ms: int, sequence: int, *, refused_by_status: bool = False
    ) -> None:
        """Remember how the stream on this worker ended. A hosted attempt costs what its final usage
        says, nothing where the provider answered with an error, else nobody knows what."""
        if self.worker is None:
            return
        usage = self.usage or Usage()
        prompt_tokens = usage.prompt_tokens or 0
        # Who refuses has run nothing: that is known, whoever says it.
        refused = outcome is Outcome.REFUSED and self.usage is None
        cost_pico = None
        if isinstance(self.worker, HostedTarget) and self.worker.price is not None:
            if refused_by_status:
                cost_pico = 0
            elif self.usage_is_final and None not in (usage.prompt_tokens, usage.output_tokens):
                cost_pico = self.worker.price.cost_pico(
                    prompt_tokens=prompt_tokens,
                    cached_tokens=usage.cached_tokens or 0,
                    output_tokens=self.output_tokens,
                )
        self.ended_attempts.append(
            UsageAttempt(
                attempt=sequence,
                choice=self.index,
                worker_id=self.worker.id,
                provider=self.worker.provider,
                started_at_ms=self.attempt_started_ms,
                ended_at_ms=now_ms,
                outcome=outcome,
                prompt_tokens=prompt_tokens,
                output_tokens=self.output_tokens,
                provider_request_id=self.provider_request_id,
                provider_cost_pico=cost_pico,
                usage_source=UsageSource.ENGINE_FINAL if refused else self.source,
                cached_prompt_tokens=usage.cached_tokens,
            )
        )
