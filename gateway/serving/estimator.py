"""The straight line's first step after who asks: what the request needs. It counts where something
depends on it, learns from what has ended, and counts afterwards what only the record needs."""

import asyncio
from collections.abc import Sequence

from billing.domain.usage_record import Outcome
from gateway.domain.expected_output import ExpectedOutput
from gateway.domain.tenant import Model
from gateway.domain.worker import WorkerView
from gateway.errors import Overloaded
from gateway.serving.authenticate import Caller
from gateway.serving.choice import Choice
from gateway.serving.estimate import Estimate, counted, fit_of, uncounted
from gateway.serving.leases import Leases
from gateway.serving.looks import Looks
from gateway.serving.ports import Tokenizer
from gateway.serving.record import lacks_prompt
from gateway.wire.request import CompletionRequest

COUNT_AFTERWARDS_S = 2.0
"""The client waits so long for its last bytes at most, and only where its engine told no usage."""


class Estimator:
    """Estimates requests of one gateway."""

    def __init__(self, tokenizer: Tokenizer, leases: Leases) -> None:
        self._tokenizer = tokenizer
        self._looks = Looks(leases)
        self._learned = ExpectedOutput()

    async def estimate(
        self,
        request: CompletionRequest,
        model: Model,
        caller: Caller,
        workers: Sequence[WorkerView],
        *,
        month: str,
        exactly: bool = False,
    ) -> Estimate:
        """What the request needs, which counts in the billing month `month`; `exactly` counts it
        also where nothing seemed to depend on that.
        Raises as `estimate` does and, for what has no room now, as `Looks.count` does."""
        fit = fit_of(request, model, caller, workers)
        found = None if exactly else uncounted(fit, workers, self._learned)
        if found is not None:
            return found
        return await self._looks.count(
            fit, month, lambda: counted(fit, workers, self._tokenizer, self._learned)
        )

    async def prompt_counts(
        self, request: CompletionRequest, tenant_id: str, needs: Estimate, choices: Sequence[Choice]
    ) -> tuple[int | None, ...]:
        """Counts of each prompt for the record: of one that was spared its count and whose engine
        told no usage it is counted now. None where nobody can in time, and with a suffix, which
        an engine may leave out. Does not raise."""
        if request.suffix is not None:
            return (None,) * len(request.prompts)
        if not needs.spared or not lacks_prompt(choices, needs.prompt_counts):
            return needs.prompt_counts
        try:
            async with asyncio.timeout(COUNT_AFTERWARDS_S):
                counts = await self._tokenizer.count(request, tenant_id)
        except (Overloaded, TimeoutError):
            counts = None
        return needs.prompt_counts if counts is None else tuple(counts)

    def learn(
        self,
        tenant_id: str,
        model: str,
        needs: Estimate,
        choices: Sequence[Choice],
        outcome: Outcome,
    ) -> None:
        """Remember how long the answers to a request without a maximum came to be, where the engine
        said it."""
        if outcome is not Outcome.COMPLETED or needs.output_is_maximum:
            return
        for choice in choices:
            if choice.usage is not None and choice.usage.output_tokens is not None:
                self._learned.observe(tenant_id, model, choice.usage.output_tokens)
