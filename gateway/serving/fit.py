"""Whether a request fits its model, the engines ready for it and the limits of who asks, by counts
of its prompts: exact ones, or a bound. Nothing of the client's is ever cut down to fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gateway.domain.engine_facts import EngineFacts, Need
from gateway.domain.scopes import ScopeLimits, scopes_of
from gateway.domain.tenant import Limits, Model, ModelLimits
from gateway.errors import ContextLengthExceeded, InvalidRequest
from gateway.serving.authenticate import Caller
from gateway.wire.request import CompletionRequest


@dataclass(frozen=True)
class Fit:
    """One request against all that bounds it. `engines` may take it; none is no bound."""

    request: CompletionRequest
    model: Model
    caller: Caller
    engines: Sequence[EngineFacts]

    def check(self, counts: Sequence[int], *, at_least: bool = False) -> None:
        """Raises ContextLengthExceeded where prompt plus maximum fit neither the model's context
        nor any of the engines, InvalidRequest where a limit on the prompt is passed. `counts` are
        of each prompt; `at_least` says that they are a lower bound."""
        asked, longest = self.request.max_tokens, max(counts)
        least = "at least " if at_least else ""
        room = self.room(longest)
        if room < 1:
            raise ContextLengthExceeded(
                f"the prompt has {least}{longest} tokens; {self._held()} with the output, "
                f"and a prompt has at most {self._longest_prompt()}",
                param=self._prompt_field,
            )
        self.check_prompt_limits(sum(counts), f"the prompt has {least}{sum(counts)} tokens")
        if asked is not None and asked > room:
            raise ContextLengthExceeded(
                f"{least}{longest} prompt tokens and up to {asked} output tokens do not "
                f"fit: {self._held()}, so there is room for {room} output tokens",
                param="max_tokens",
            )

    def holds_at_most(self, counts: Sequence[int]) -> bool:
        """Whether it fits the context, every engine and the limits on its prompt whatever of
        `counts`, upper bounds, it turns out to have: with its whole maximum, the client's or the
        model's own."""
        need = Need(max(counts), self.whole_maximum)
        return (
            need.prompt_tokens + need.max_tokens <= self.model.context_tokens
            and all(engine.holds(need) for engine in self.engines)
            and all(
                limits.max_prompt_tokens is None or sum(counts) <= limits.max_prompt_tokens
                for _, limits in self._limits
            )
        )

    def check_prompt_limits(self, prompt_tokens: int, has: str) -> None:
        """Raises InvalidRequest, which begins as `has` says, where a scope allows less."""
        for scope, limits in self._limits:
            limit = limits.max_prompt_tokens
            if limit is not None and prompt_tokens > limit:
                raise InvalidRequest(
                    f"{has}; the limit of the {scope.shown} is {limit} tokens of prompt",
                    param=self._prompt_field,
                )

    def check_output_limits(self) -> None:
        """Raises InvalidRequest where a scope allows less output a choice than was asked for."""
        asked = self.request.max_tokens
        for scope, limits in self._limits:
            limit = limits.max_output_tokens
            if limit is not None and (limit == 0 or (asked or 0) > limit):
                wants = "any output is asked for" if asked is None else f"{asked} are asked for"
                raise InvalidRequest(
                    f"the limit of the {scope.shown} is {limit} output tokens a choice; {wants}",
                    param="max_tokens",
                )

    def check_tokens_a_minute(self, needed: int, needs: str) -> None:
        """Raises InvalidRequest, which begins as `needs` says, where a scope's whole minute does
        not hold so much."""
        for scope in self.scopes:
            if scope.tpm is not None and needed > scope.tpm:
                raise InvalidRequest(
                    f"{needs}; the limit of the {scope.shown} is {scope.tpm} a minute, "
                    "so it can never be admitted"
                )

    def room(self, prompt_tokens: int) -> int:
        """Output tokens that fit after the prompt on the roomiest engine."""
        most = max((engine.output_room(prompt_tokens) for engine in self.engines), default=None)
        context = self.model.context_tokens - prompt_tokens
        return context if most is None else min(context, most)

    @property
    def whole_maximum(self) -> int:
        """What each choice may generate where there is room: what the client said or, where it said
        nothing, the model's cap within the limits."""
        if self.request.max_tokens is not None:
            return self.request.max_tokens
        caps = [limits.max_output_tokens for _, limits in self._limits]
        return min([self.model.max_output_tokens, *(cap for cap in caps if cap is not None)])

    @property
    def counts_tokens(self) -> bool:
        """Whether any scope limits tokens a minute or money."""
        return any(s.tpm is not None or s.budget_pico is not None for s in self.scopes)

    @cached_property
    def scopes(self) -> tuple[ScopeLimits, ...]:
        """The scopes of the request."""
        return scopes_of(self.caller.tenant, self.caller.key, self.request.model)

    @cached_property
    def _limits(self) -> tuple[tuple[ScopeLimits, Limits | ModelLimits], ...]:
        """Each scope with the limits that hold in it."""
        tenant, key, none = self.caller.tenant.limits, self.caller.key.limits, ModelLimits()
        model = self.request.model
        own = (tenant, key, tenant.models.get(model, none), key.models.get(model, none))
        return tuple(zip(self.scopes, own, strict=True))

    @property
    def _prompt_field(self) -> str:
        return "messages" if self.request.endpoint == "chat" else "prompt"

    def _longest_prompt(self) -> int:
        context = self.model.context_tokens
        most = max((engine.longest_prompt for engine in self.engines), default=context)
        return min(context - 1, most)

    def _held(self) -> str:
        holds = self.room(0)
        if holds >= self.model.context_tokens:
            return f"the context of {self.model.id} holds {self.model.context_tokens} tokens"
        return f"a worker of {self.model.id} holds {holds} tokens"
