"""What metrics and logs cost: a request, in CPU µs, and each time that they are read or sent.

`PYTHONPATH=.:tests .venv/bin/python -m benchmarks.telemetry [--quick]` prints tables. Everything is
one process in turn, CPU time, the least of its rounds, as a busy machine changes that least. The
baseline in the same run is the whole straight line on ports in memory: no store, no network.
"""

import asyncio
import contextlib
import functools
import io
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from unittest import mock
from uuid import UUID

import click
import engine_events as events
from log_capture import logging_to
from memory_gateway import MemoryGateway
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from prometheus_client import REGISTRY, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics import MetricWrapperBase
from usage_examples import a_record

from billing.domain.usage_record import UsageRecord
from gateway.errors import WeirError
from gateway.telemetry import ended, request_lines
from gateway.telemetry.log_context import begin_request
from gateway.telemetry.otlp_metrics import metrics_data
from gateway.telemetry.reading import prometheus_text

ROUNDS = 9
TIMES = 4_000
PICO = 10**9
RECORD = a_record(
    itl_max_us=40_000, tpot_us=9_000, cost_pico=PICO, list_cost_pico=PICO, currency="USD"
)
ONE = UUID(int=1)


def least_us(work: Callable[[], object], times: int, rounds: int) -> float:
    """CPU µs of one call."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(times):
            work()
        found.append((time.process_time() - began) / times * 1e6)
    return min(found)


def looked_up_each_time() -> None:
    """Our metrics, without the series that are kept at hand."""
    ended.forget()
    ended.observe_ended(RECORD)


def opentelemetrys_own() -> Callable[[], None]:
    """The same counts by instruments of OpenTelemetry's SDK."""
    meter = MeterProvider([InMemoryMetricReader()]).get_meter("x")
    counters = [meter.create_counter(f"c{number}") for number in range(3)]
    tokens = meter.create_counter("tokens")
    histograms = [meter.create_histogram(f"h{number}") for number in range(6)]

    def count() -> None:
        of = {"model": RECORD.model, "request_class": RECORD.request_class}
        for counter in counters:
            counter.add(1, {**of, "outcome": "completed"})
        for kind in ("prompt", "cached_prompt", "output"):
            tokens.add(5, {"model": RECORD.model, "kind": kind})
        for histogram in histograms:
            histogram.record(0.3, of)

    return count


@contextmanager
def nothing_counted() -> Iterator[None]:
    """Metrics are there, and do nothing."""

    def nothing(*_: object, **__: object) -> None:
        pass

    with (
        mock.patch.multiple(Counter, inc=nothing),
        mock.patch.multiple(Gauge, inc=nothing, dec=nothing, set=nothing),
        mock.patch.multiple(Histogram, observe=nothing),
        mock.patch("gateway.serving.closing.observe_ended", nothing),
    ):
        yield


async def served(times: int) -> float:
    """CPU µs of a streamed request of 20 events, on ports in memory."""
    gateway = MemoryGateway(*(events.answer(["a"] * 20) for _ in range(times)))
    began = time.process_time()
    for _ in range(times):
        await gateway.post(stream=True)
    return (time.process_time() - began) / times * 1e6


async def counts_of_a_request() -> list[Callable[[], object]]:
    """Everything that metrics are told while a request is served, to be told again."""
    told: list[Callable[[], object]] = []
    of_a_class = {Counter: ("inc",), Gauge: ("inc", "dec", "set"), Histogram: ("observe",)}
    with contextlib.ExitStack() as stack:

        def note(owner: type, name: str) -> None:
            real = getattr(owner, name)

            def noted(self: object, *given: object, **named: object) -> object:
                told.append(functools.partial(real, self, *given, **named))
                return real(self, *given, **named)

            stack.enter_context(mock.patch.object(owner, name, noted))

        gateway = MemoryGateway(events.answer(["a"] * 20), events.answer(["a"] * 20))
        await gateway.post(stream=True)  # what is looked up once is by now
        note(MetricWrapperBase, "labels")
        for owner, names in of_a_class.items():
            for name in names:
                note(owner, name)
        await gateway.post(stream=True)
    return told


async def in_turn(ways: dict[str, Callable[[], Awaitable[float]]], rounds: int) -> dict[str, float]:
    """The least of each, one round of all after the other."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(await way())
    return {name: min(each) for name, each in found.items()}


async def whole(times: int, rounds: int) -> dict[str, float]:
    """The straight line with and without."""

    async def without() -> float:
        with nothing_counted(), logging_to(requests="none"):
            return await served(times)

    async def counted() -> float:
        with logging_to(requests="failed"):
            return await served(times)

    async def written() -> float:
        with (
            logging_to(form="json", requests="all"),
            mock.patch.object(request_lines, "LINES_PER_S", 10**9),
        ):
            return await served(times)

    return await in_turn(
        {
            "the straight line, nothing counted": without,
            "metrics, no line of its own (the default)": counted,
            "metrics, and a line of JSON for each request": written,
        },
        rounds,
    )


def parts(times: int, rounds: int) -> dict[str, float]:
    """What each costs alone."""
    error = WeirError("x")
    counts = asyncio.run(counts_of_a_request())
    found = {
        "an empty call": least_us(lambda: None, times, rounds),
        "counting an ended request": least_us(lambda: ended.observe_ended(RECORD), times, rounds),
        "the same, series looked up each time": least_us(looked_up_each_time, times, rounds),
        "the same by OpenTelemetry's instruments": least_us(opentelemetrys_own(), times, rounds),
        f"all {len(counts)} calls of metrics while a request is served": least_us(
            lambda: [call() for call in counts], times, rounds
        ),
        "naming the request for the log": least_us(lambda: begin_request(ONE), times, rounds),
    }

    def line(record: UsageRecord = RECORD) -> None:
        request_lines.log_ended(record)

    with mock.patch.object(request_lines, "LINES_PER_S", 10**9):
        for form in ("text", "json"):
            with logging_to(form=form, requests="all"):
                found[f"a line about a request, {form}"] = least_us(line, times, rounds)
        with logging_to():
            found["a line that is not written"] = least_us(line, times, rounds)
    with mock.patch.object(request_lines, "LINES_PER_S", 0), logging_to():
        found["one more of a flood"] = least_us(
            lambda: request_lines.log_error_answer(error.status, error.code, is_fault=True),
            times,
            rounds,
        )
    return found


def read(rounds: int) -> dict[str, float]:
    """Reading and sending all of it, with ten models in two classes."""
    for model in range(10):
        for request_class in ("interactive", "batch"):
            record = a_record(model=f"m{model}", request_class=request_class, tpot_us=5)
            ended.observe_ended(record)
    resource = Resource({"service.name": "weir-gateway"})
    families = list(REGISTRY.collect())
    series = sum(len(family.samples) for family in families)

    def encoded() -> bytes:
        return encode_metrics(metrics_data(families, resource, now_ns=1)).SerializeToString()

    return {
        f"a scrape of {series:,} samples at once": least_us(generate_latest, 5, rounds),
        "a scrape as `/metrics` makes it": least_us(
            lambda: asyncio.run(prometheus_text()), 5, rounds
        ),
        "of that, the longest turn of the loop": asyncio.run(longest_turn_us(rounds)),
        "reading them for a push": least_us(lambda: list(REGISTRY.collect()), 5, rounds),
        f"a push's message ({len(encoded()) // 1024} KiB), in a thread": least_us(
            encoded, 5, rounds
        ),
    }


async def longest_turn_us(rounds: int) -> float:
    """For how long others wait while a scrape is made, the least of the rounds' longest."""
    found = []
    for _ in range(rounds):
        scrape = asyncio.create_task(prometheus_text())
        longest = 0.0
        while not scrape.done():
            began = time.process_time()
            await asyncio.sleep(0)
            longest = max(longest, time.process_time() - began)
        found.append(longest * 1e6)
    return min(found)


def show(title: str, found: dict[str, float]) -> None:
    """A table of Markdown."""
    click.echo(f"\n| {title} | CPU µs |\n| --- | --- |")
    for name, us in found.items():
        click.echo(f"| {name} | {us:,.1f} |")


@click.command()
@click.option("--quick", is_flag=True, help="Few rounds: to see that it runs.")
def main(*, quick: bool) -> None:
    """Print the tables."""
    times, rounds = (50, 2) if quick else (TIMES, ROUNDS)
    logging.getLogger().addHandler(logging.StreamHandler(io.StringIO()))
    show("a request", asyncio.run(whole(times // 20, rounds)))
    show("alone", parts(times, rounds))
    show("all of it", read(rounds))


if __name__ == "__main__":
    main()
