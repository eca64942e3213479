"""Reads all metrics without holding requests up: with ten models it is thousands of samples, some
10 µs each, and the event loop gets its turn after every few."""

import asyncio
from collections.abc import AsyncIterator, Iterable

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as Family

SAMPLES_A_TURN = 100


class _Read:
    """A registry of what was read already."""

    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        """As it was read."""
        return self._families


async def families_of(registry: CollectorRegistry = REGISTRY) -> AsyncIterator[Family]:
    """Each metric with its samples as they are now."""
    samples = 0
    for family in registry.collect():
        samples += len(family.samples)
        if samples > SAMPLES_A_TURN:
            samples = 0
            await asyncio.sleep(0)
        yield family


async def prometheus_text(registry: CollectorRegistry = REGISTRY) -> bytes:
    """All of them in Prometheus' text format, but for when each series began: there it would be a
    series more of each."""
    pieces = []
    async for family in families_of(registry):
        shown = Family(family.name, family.documentation, family.type)
        shown.samples = [each for each in family.samples if not each.name.endswith("_created")]
        pieces.append(generate_latest(_Read([shown])))
    return b"".join(pieces)
