"""Metrics on their way to a collector over real HTTP, which may be away, slow or broken."""

import asyncio
import socket
import time

import pytest
from log_capture import logging_to
from metrics_collector import Collector, collector
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, Counter

from gateway.telemetry.metrics_push import PUSHES, MetricsPush


class World:
    """A registry with one counter, and what sends it."""

    def __init__(self, url: str, *, timeout_s: float = 5.0) -> None:
        self.registry = CollectorRegistry()
        self.counter = Counter("weir_x_total", "Of what.", registry=self.registry)
        self.refreshed = 0
        self.push = MetricsPush(
            url,
            Resource({"service.instance.id": "g-1"}),
            self.refresh,
            period_ms=10,
            timeout_s=timeout_s,
            registry=self.registry,
        )

    async def refresh(self) -> None:
        """Count what is counted at each push."""
        self.refreshed += 1
        self.counter.inc()


def pushes() -> dict[str, float]:
    """How many were taken, and how many failed, so far in this process."""
    return {result: PUSHES.labels(result)._value.get() for result in ("taken", "failed")}


def value_at(found: Collector) -> float:
    """The counter as the collector knows it."""
    return float(found.metrics["weir_x"].sum.data_points[0].as_double)


async def test_they_are_sent_each_period_and_once_more_at_the_end() -> None:
    """Fresh each time, and with who sends them."""
    async with collector() as found:
        world = World(found.url)
        loop = asyncio.create_task(world.push.run())
        async with asyncio.timeout(10):
            for _ in range(2):
                await found.asked.get()
        loop.cancel()
        await asyncio.wait([loop])
        world.counter.inc(100)
        await world.push.close(within_s=10)
        assert value_at(found) > 100
        assert value_at(found) == world.refreshed + 100
        assert found.resource == {"service.instance.id": "g-1"}


async def test_a_collector_that_is_away_is_told_of_once_and_then_has_everything() -> None:
    """Nothing is lost, since all is cumulative; a failing collector's words are not logged."""
    before = pushes()
    async with collector() as found:
        world = World(found.url)
        found.status = 500
        with logging_to() as log:
            for _ in range(3):
                assert not await world.push.push()
            found.status = 200
            assert await world.push.push()
            assert await world.push.push()
        assert value_at(found) == 5
    assert pushes() == {"taken": before["taken"] + 2, "failed": before["failed"] + 3}
    first, second = log.lines
    assert "the collector does not take them" in first
    assert "the collector takes them again" in second
    assert "own words" not in log.getvalue()


async def test_nobody_listens() -> None:
    """A refused connection is a failed push, and no more than that."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = World(f"http://127.0.0.1:{port}/v1/metrics", timeout_s=0.5)
    assert not await world.push.push()


async def test_a_slow_collector_holds_up_neither_the_loop_nor_a_stop() -> None:
    """While it is waited for the loop turns; no second push begins; the end is bounded."""
    async with collector() as found:
        found.answers.clear()
        world = World(found.url, timeout_s=30)
        first = asyncio.create_task(world.push.push())
        async with asyncio.timeout(10):
            await found.asked.get()
        assert not first.done()
        assert not await world.push.push()
        assert len(found.bodies) == 1
        first.cancel()
        await asyncio.wait([first])
        began_s = time.monotonic()
        await world.push.close(within_s=0.2)
        assert time.monotonic() - began_s < 10


async def test_a_slow_last_push_is_given_up() -> None:
    """A stop waits for so long and no longer, also where the last push is the first."""
    async with collector() as found:
        found.answers.clear()
        world = World(found.url, timeout_s=30)
        began_s = time.monotonic()
        await world.push.close(within_s=0.2)
        assert 0.2 <= time.monotonic() - began_s < 10
        assert world.refreshed == 1


async def test_a_bug_in_what_is_read_costs_one_push(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told without its words."""
    async with collector() as found:
        world = World(found.url)

        async def breaks() -> None:
            raise ValueError("secret words")

        with logging_to() as log, monkeypatch.context() as patch:
            patch.setattr(world.push, "_refresh", breaks)
            assert not await world.push.push()
        assert "metrics could not be sent: ValueError at" in log.lines[0]
        assert "secret words" not in log.getvalue()
        assert await world.push.push()
