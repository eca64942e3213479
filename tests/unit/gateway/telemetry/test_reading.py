"""All metrics are read without holding requests up."""

import asyncio

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.reading import families_of, prometheus_text


def a_registry(series: int = 40) -> CollectorRegistry:
    """Of three kinds, with so many series each."""
    registry = CollectorRegistry()
    for number in range(series):
        Counter(f"c{number}_total", 'Of "what"\\.', ["of"], registry=registry).labels("a\nb").inc()
        Gauge(f"g{number}", "Of what.", registry=registry).set(number)
        Histogram(f"h{number}_seconds", "Of what.", registry=registry).observe(number)
    return registry


async def test_the_text_is_prometheus_own_without_when_each_began() -> None:
    """Sample by sample."""
    registry = a_registry()
    families = text_string_to_metric_families(generate_latest(registry).decode())
    expected = [
        sample for family in families for sample in family.samples
        if not sample.name.endswith("_created")
    ]  # fmt: skip
    found = text_string_to_metric_families((await prometheus_text(registry)).decode())
    assert [sample for family in found for sample in family.samples] == expected


async def test_others_have_their_turn_meanwhile() -> None:
    """Many times, while all of it is read."""
    registry = a_registry(100)
    reading = asyncio.create_task(prometheus_text(registry))
    turns = 0
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 10
    families = [family async for family in families_of(registry)]
    assert len(families) == 300
