"""What learning ceilings needs from the outside: the records that all gateways share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.queue.learned import Record


@dataclass(frozen=True)
class Met:
    """The records after a meeting."""

    now_ms: int
    """The store's time (Unix ms): that of all records."""
    records: dict[str, Record]
    """By worker."""
    taken: frozenset[str]
    """Workers of which what this gateway knows was new to the others."""


class PoolCeilings(Protocol):
    """One record for each worker of a pool, shared by all gateways (`learned.Record.met`)."""

    async def meet(self, pool: str, brought: Mapping[str, Record]) -> Met:
        """Bring what this gateway knows of some workers, and what it saw of them since it last did;
        a worker of which nothing is remembered begins with it. All at once, or nothing.

        Raises LedgerUnavailable; then what was seen may or may not have been added. Do not bring it
        again: a second's samples are no loss, and twice they would weigh double.
        """
