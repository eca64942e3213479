"""The look at the limits before a long prompt is counted: a tenant without room must not take up a
worker's time with prompts that are refused anyway.

What is told then must be what a count would tell:

- *429 and its wait* come from a real decision about the least that the request may need. A refusal
  consumes nothing. Should it be granted after all, it is given back at once and the prompt counted.
- *400*: what may turn out to exceed a limit itself is counted before any 429 is told, since waiting
  would not help it. One such count at a time for a tenant; its others are told 429 meanwhile.

Money is left out: a refusal for a budget says what would fit, and that takes a count.
"""

from collections.abc import Awaitable, Callable
from uuid import uuid4

from gateway.domain.admission import Demand
from gateway.errors import LimitReached, Overloaded, QuotaExceeded
from gateway.serving.estimate import Estimate, fewest_tokens, may_never_fit
from gateway.serving.fit import Fit
from gateway.serving.leases import Leases

LOOKED_AT_CHARACTERS = 16_384
"""Counting a shorter prompt costs less than a look at the limits first."""


class Looks:
    """The looks of one gateway."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._counting: set[str] = set()

    async def count(
        self, fit: Fit, month: str, count: Callable[[], Awaitable[Estimate]]
    ) -> Estimate:
        """What `count` returns, which is called where there seems to be room, or where the count
        decides whether there ever can be. `month` is the request's billing month.

        Raises as `count` and `Leases.acquire` do.
        """
        if sum(fit.request.prompt_characters) <= LOOKED_AT_CHARACTERS:
            return await count()
        refused = await self._refusal(fit, month)
        if refused is None:
            return await count()
        tenant_id = fit.caller.tenant.id
        if tenant_id in self._counting or not may_never_fit(fit):
            raise refused
        self._counting.add(tenant_id)
        try:
            return await count()
        except Overloaded:
            raise refused from None
        finally:
            self._counting.discard(tenant_id)

    async def _refusal(self, fit: Fit, month: str) -> LimitReached | None:
        """What is told of the least that the request may need; None where that has room."""
        caller, request = fit.caller, fit.request
        fewest = fewest_tokens(request)
        # An id of its own: one that was settled is never decided on again.
        least = Demand(uuid4().hex, request.sequences, fewest, fewest, month=month)
        if await self._leases.has_room(caller, request.model, least):
            return None
        try:
            lease, _ = await self._leases.acquire(caller, request.model, least, is_least=True)
        except LimitReached as refused:
            return refused
        except QuotaExceeded:
            return None
        await self._leases.settle(lease, actual_tokens=0, ran=False)
        return None
