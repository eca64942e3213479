"""What months have cost, for a ledger in memory that does not know."""

import asyncio
from collections import defaultdict

from memory_ports import MemoryLedger

from gateway.domain.admission_money import name_of


class MemoryMonths:
    """Tells the ledger what a test wrote into `spent`: by month, then by scope, in pico-units."""

    def __init__(self, ledger: MemoryLedger) -> None:
        self._ledger = ledger
        self.spent: dict[str, dict[str, int]] = defaultdict(dict)
        self.asked: list[tuple[str, str]] = []
        self.knows = True
        self._one_at_a_time = asyncio.Lock()

    async def rebuild(self, tenant_id: str, month: str) -> bool:
        """Implements `gateway.serving.ports.MonthRebuild`."""
        self.asked.append((tenant_id, name_of(month)))
        if not self.knows:
            return False
        async with self._one_at_a_time:
            begun = await self._ledger.begin_month(tenant_id, month)
            if begun is None:
                return True
            spent = self.spent[name_of(month)]
            return await self._ledger.finish_month(tenant_id, month, begun.at_ms, spent)
