"""Whether a request fits its model, the engines ready for it and the limits of who asks, by counts
of its prompts: exact ones, or a bound. Nothing of the client's is ever cut down to fit."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.engine_facts import EngineFacts
from gateway.domain.scopes import scopes_of
from gateway.domain.tenant import Limits, Model
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
        nor any of the engines, InvalidRequest where a limit on prompt or output is passed. `counts`
        are of each prompt; `at_least` says that they are a lower bound."""
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
        self._check_output_limit()
        if asked is not None and asked > room:
            raise ContextLengthExceeded(
                f"{least}{longest} prompt tokens and up to {asked} output tokens do not "
                f"fit: {self._held()}, so there is room for {room} output tokens",
                param="max_tokens",
            )

    def check_prompt_limits(self, prompt_tokens: int, has: str) -> None:
        """Raises InvalidRequest, which begins as `has` says, where tenant or key allow less."""
        for scope, limits in self._limits():
            limit = limits.max_prompt_tokens
            if limit is not None and prompt_tokens > limit:
                raise InvalidRequest(
                    f"{has}; the {scope}'s limit is {limit}", param=self._prompt_field
                )

    def check_tokens_a_minute(self, needed: int, needs: str) -> None:
        """Raises InvalidRequest, which begins as `needs` says, where a scope's whole minute does
        not hold so much."""
        for scope in scopes_of(self.caller.tenant, self.caller.key, self.request.model):
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
    def output_cap(self) -> int | None:
        """The smaller of the tenant's and the key's limits on a choice's output."""
        caps = [
            limits.max_output_tokens
            for _, limits in self._limits()
            if limits.max_output_tokens is not None
        ]
        return min(caps, default=None)

    def _check_output_limit(self) -> None:
        cap = self.output_cap
        if cap is not None and (cap == 0 or (self.request.max_tokens or 0) > cap):
            raise InvalidRequest(
                f"at most {cap} output tokens are allowed a choice", param="max_tokens"
            )

    def _limits(self) -> tuple[tuple[str, Limits], ...]:
        return (("tenant", self.caller.tenant.limits), ("key", self.caller.key.limits))

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
