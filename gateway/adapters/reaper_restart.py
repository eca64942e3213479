"""What a gateway's copies know of requests that its own journal has open when it opens again."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from billing.domain.usage_record import UsageRecord
from gateway.adapters.journal.journal import wall_clock_ms
from gateway.adapters.second_copy_records import Copies
from gateway.adapters.shipper import Shipper
from gateway.domain.lease import Admitted
from gateway.domain.orphans import lost_record
from gateway.serving.ports import LedgerUnavailable

WAIT_S = 3.0
logger = logging.getLogger(__name__)


class CopiedEnds:
    """Asks the store, for `WAIT_S` at most. `rate` adds to a record what its tokens would have
    cost."""

    def __init__(self, copies: Copies, rate: Callable[[UsageRecord], UsageRecord]) -> None:
        self._copies = copies
        self._rate = rate

    async def known(self, gateway_id: str, lost: Sequence[Admitted]) -> Mapping[UUID, UsageRecord]:
        """How those requests ended: as the copy says or, where it knows no end, lost with the
        tokens that were last told. Without the store nothing is known. Does not raise."""
        try:
            async with asyncio.timeout(WAIT_S):
                found = await self._copies.some(gateway_id, [entry.request_id for entry in lost])
        except (LedgerUnavailable, TimeoutError) as error:
            logger.warning("what ran is not known from its copies (%s)", type(error).__name__)
            return {}
        now_ms = wall_clock_ms()
        return {
            copy.request_id: copy.body
            if isinstance(copy.body, UsageRecord)
            else self._rate(
                lost_record(
                    copy.body,
                    now_ms=now_ms,
                    prompt_tokens=copy.prompt_tokens,
                    output_tokens=copy.output_tokens,
                )
            )
            for copy in found
        }


def settle_when_shipped(
    shipper: Shipper, ended: Sequence[UsageRecord], settle: Callable[[list[UsageRecord]], None]
) -> None:
    """Have ends that only a copy knew settled once they are in Postgres: their settlements may have
    been lost with the life that they are from. What listens to `on_shipped` already hears it too.
    """
    unsettled = {record.request_id: record for record in ended}
    before = shipper.on_shipped

    def shipped(request_ids: Sequence[UUID]) -> None:
        before(request_ids)
        found = [unsettled.pop(each) for each in request_ids if each in unsettled]
        if found:
            settle(found)

    if unsettled:
        shipper.on_shipped = shipped
