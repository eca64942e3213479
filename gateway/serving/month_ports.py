"""What the rebuild of a month's money needs from the outside."""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from gateway.domain.billing_month import BillingMonth
from gateway.domain.spend import Cost


class SpendUnavailable(Exception):
    """Usage records cannot be read now."""

    def __init__(self, reason: type[BaseException]) -> None:
        super().__init__(reason.__name__)
        self.reason = reason


class Snapshot(Protocol):
    """A tenant's usage records of a month, as they were committed at the first question."""

    async def costs(self) -> list[Cost]:
        """What all of them cost, a sum for each key and model."""

    async def costs_of(self, request_ids: Collection[str]) -> list[Cost]:
        """What those requests cost that are among them; ids as hex."""


class Spend(Protocol):
    """Usage records. Raises SpendUnavailable, also from a snapshot's methods."""

    def snapshot(
        self, tenant_id: str, month: BillingMonth
    ) -> AbstractAsyncContextManager[Snapshot]:
        """Those of the tenant admitted in the month, in its currency."""


class Shipping(Protocol):
    """How far every gateway has shipped. Raises LedgerUnavailable."""

    async def ask(self) -> int:
        """An instant of the store's time, after all that has happened."""

    async def waited_for(self, instant_ms: int) -> tuple[str, ...]:
        """Gateways that may have recorded something by `instant_ms` that is in no snapshot yet."""


class Turns(Protocol):
    """Whose turn a rebuild is, so that gateways do not begin each other's again. Nothing is wrong
    where two have it at once. Raises LedgerUnavailable."""

    async def claim(self, tenant_id: str, what: str, holder: str) -> bool:
        """Take or keep the turn for 5 s; False where another has it."""

    async def release(self, tenant_id: str, what: str, holder: str) -> None:
        """Give it back."""
