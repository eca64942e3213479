"""How long first tokens and tokens take now, over all gateways.

Each gateway counts the requests that end in slices of ten seconds, and tells its slices to the
store once a second; whoever looks adds up what all have told. What a gateway could not tell while
the store was away it tells as soon as it is back, while it is young enough to count.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from billing.domain.usage_record import UsageRecord
from gateway.domain.latency import (
    SLICES_KEPT,
    Figures,
    Measure,
    OfModel,
    OfWorker,
    Series,
    Slice,
    bucket_of,
    figures_of,
    slice_of,
)
from gateway.serving.ports import Clock, LedgerUnavailable
from gateway.serving.queue.keeping import forever

PERIOD_S = 1.0
_TTFT, _TPOT = Measure.TTFT.value, Measure.TPOT.value


class Slices(Protocol):
    """The slices of all gateways. Every method raises LedgerUnavailable."""

    async def tell(self, number: int, measured: Slice) -> None:
        """Put this gateway's part of one slice in the place of what it told of it before."""

    async def told(self, numbers: Sequence[int]) -> Mapping[int, Slice]:
        """What all gateways told of these slices, added up."""


class Latencies:
    """What this gateway measured in the last five minutes, and what all did."""

    def __init__(self, store: Slices, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._slices: dict[int, Slice] = {}
        self._untold: set[int] = set()

    def ended(self, record: UsageRecord) -> None:
        """Count a request that has ended; of one without a token there is nothing to count."""
        ttft_ms, tpot_us = record.ttft_ms, record.tpot_us
        if ttft_ms is None:
            return
        number = slice_of(self._clock.now_ms())
        measured = self._slices.get(number)
        if measured is None:
            measured = self._begun(number)
        self._untold.add(number)
        worker, model, request_class = record.worker_id, record.model, record.request_class
        bucket = bucket_of(ttft_ms * 1000)
        _count(measured, OfModel(_TTFT, model, request_class), bucket)
        if worker is not None:
            _count(measured, OfWorker(_TTFT, worker), bucket)
        if tpot_us is None:
            return
        bucket = bucket_of(tpot_us)
        _count(measured, OfModel(_TPOT, model, request_class), bucket)
        if worker is not None:
            _count(measured, OfWorker(_TPOT, worker), bucket)

    def _begun(self, number: int) -> Slice:
        for old in [each for each in self._slices if each <= number - SLICES_KEPT]:
            del self._slices[old]
            self._untold.discard(old)
        measured = self._slices[number] = {}
        return measured

    async def tell(self) -> None:
        """Tell the store what is new. Raises LedgerUnavailable; then it is still to be told."""
        oldest = slice_of(self._clock.now_ms()) - SLICES_KEPT
        for number in sorted(self._untold):
            self._untold.discard(number)
            measured = self._slices.get(number)
            # None: while an earlier one was told it became too old to count.
            if number <= oldest or measured is None:
                continue
            try:
                await self._store.tell(number, measured)
            except BaseException:
                self._untold.add(number)
                raise

    async def run(self) -> None:
        """Tell once a second, for ever; a store that is away is told later."""
        await forever("the telling of latencies", self._turns)

    async def _turns(self) -> None:
        while True:
            with suppress(LedgerUnavailable):
                await self.tell()
            await asyncio.sleep(PERIOD_S)

    async def figures(self) -> dict[Series, Figures]:
        """The figures of all gateways, by what they are of. Raises LedgerUnavailable."""
        now_ms = self._clock.now_ms()
        present = slice_of(now_ms)
        told = await self._store.told(range(present - SLICES_KEPT + 1, present + 1))
        return figures_of(told, now_ms)


def _count(measured: Slice, series: Series, bucket: int) -> None:
    histogram = measured.get(series)
    if histogram is None:
        histogram = measured[series] = {}
    histogram[bucket] = histogram.get(bucket, 0) + 1
