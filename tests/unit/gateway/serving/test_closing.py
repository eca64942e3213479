"""INV-1 through bugs of our own and cancellations: at any point after admission there is one
record, nobody pays for it, and nothing stays held."""

import asyncio
from collections.abc import Callable
from typing import Any

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, error_of, until
from scripted_engine import HANG

from billing.domain.usage_record import Outcome
from gateway.serving import closing, completion, record

UNTOLD = [events.role(), events.content("a"), events.content("b"), events.finish()]
"""An engine that tells no usage, so that the prompt is counted afterwards."""


class Bug(Exception):
    """What nobody expects."""


def broken(*_: Any, **__: Any) -> Any:
    raise Bug


def from_call(number: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """As `real`, and a bug from that call on."""
    calls = 0

    def call(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        return broken() if calls >= number else real(*given, **named)

    return call


def break_gateway(gateway: MemoryGateway, where: str, patch: pytest.MonkeyPatch) -> None:
    """Break one step behind admission."""
    if where == "headers":
        patch.setattr(completion, "limit_headers", broken)
    elif where == "choices":
        patch.setattr(completion, "choices_of", broken)
    elif where == "live":
        patch.setattr(gateway.live, "add", broken)
    elif where == "count":
        patch.setattr(gateway.tokenizer, "count", broken)
    else:
        book = from_call(2, gateway.directory.price_book)
        patch.setattr(gateway.directory, "price_book", book)


@pytest.mark.parametrize(("suffix", "prompt"), [("x", 0), (None, 5)])
async def test_a_count_with_a_suffix_is_never_recorded(suffix: str | None, prompt: int) -> None:
    """INV-6: an engine without a template for it leaves the suffix out, and told us nothing."""
    gateway = MemoryGateway([events.chunk(text="a"), events.chunk(text="", finish="stop")])
    body = {"model": "m", "prompt": "p", "suffix": suffix}
    await gateway.serve(gateway.a_client(body), endpoint="completions")
    assert gateway.assert_one_of_each(Outcome.COMPLETED).prompt_tokens == prompt


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("where", ["headers", "choices", "live", "count", "prices"])
async def test_a_bug_after_admission_is_recorded_and_settled(
    where: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INV-1, INV-5: once each, as lost by us; the client is told that we failed."""
    gateway = MemoryGateway(UNTOLD)
    break_gateway(gateway, where, monkeypatch)
    client = await gateway.post(stream=stream)
    entry = gateway.assert_one_of_each(Outcome.GATEWAY_LOST)
    assert (entry.billable, entry.cost_pico or 0) == (False, 0)
    assert error_of(client)["code"] == "internal_error"
    ran = where in ("count", "prices")
    assert (entry.output_tokens, bool(entry.attempts)) == ((2, True) if ran else (0, False))


async def test_what_cannot_be_added_up_is_recorded_without_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bug in what counts meets the backstop too: what was admitted is recorded all the same."""
    gateway = MemoryGateway(events.answer(["a"]))
    real = record.usage_record

    def counts_nothing(admitted: Any, choices: Any, *given: Any, **named: Any) -> Any:
        return broken() if choices else real(admitted, choices, *given, **named)

    monkeypatch.setattr(closing, "usage_record", counts_nothing)
    await gateway.post()
    entry = gateway.assert_one_of_each(Outcome.GATEWAY_LOST)
    assert (entry.prompt_tokens, entry.output_tokens) == (0, 0)


async def test_a_cancelled_request_is_recorded_and_settled() -> None:
    """A loop that ends cancels what still runs: even then nothing is left held."""
    gateway = MemoryGateway([events.role(), HANG])
    waiting = asyncio.create_task(gateway.post(stream=True))
    await until(lambda: gateway.engine.streams and gateway.leases.held)
    (task,) = gateway.completions._tasks
    task.cancel()
    await asyncio.wait([task, waiting])
    gateway.assert_one_of_each(Outcome.GATEWAY_LOST)


async def test_a_cancelled_admission_gives_its_lease_back() -> None:
    """INV-4: cancelled while the journal is being told; then nothing was admitted."""
    gateway = MemoryGateway(events.answer(["a"]))
    told = asyncio.Event()

    async def never(entry: object) -> None:
        told.set()
        await asyncio.Event().wait()

    gateway.journal.admitted = never  # type: ignore[method-assign]
    waiting = asyncio.create_task(gateway.post())
    await told.wait()
    assert gateway.leases.held == 1
    (task,) = gateway.completions._tasks
    task.cancel()
    await asyncio.wait([task, waiting])
    assert len(gateway.ledger.settlements) == 1
    gateway.assert_nothing_admitted()


def charges_of(gateway: MemoryGateway) -> list[int | None]:
    """What its places are given back with, in weighted tokens."""
    queue = gateway.queues.gateway("g")
    leave, charged = queue.leave, list[int | None]()

    async def heard(pool: str, ticket_id: str, *, actual_cost: int | None) -> None:
        charged.append(actual_cost)
        await leave(pool, ticket_id, actual_cost=actual_cost)

    queue.leave = heard  # type: ignore[method-assign]
    return charged


@pytest.mark.parametrize(("prompt", "output"), [(5, 2_000_000_000), (2_000_000_000, 2)])
async def test_a_wrong_count_is_not_charged_to_its_tenants_turn(prompt: int, output: int) -> None:
    """INV-9: the record has what the engine said; the turn no more than the request could take."""
    told = [events.role(), events.content("a"), events.finish(), events.usage(prompt, output)]
    gateway = MemoryGateway(told)
    charged = charges_of(gateway)
    await gateway.post(max_tokens=10)
    (cost,) = charged
    assert cost is not None
    assert 0 < cost <= gateway.journal.admissions[0].prompt_tokens + 2 * 10
    (record,) = gateway.journal.records
    assert max(record.prompt_tokens, record.output_tokens) == 2_000_000_000


async def test_what_was_taken_beyond_what_was_expected_is_charged() -> None:
    """INV-9: without a maximum an answer may be longer than what is reserved for it."""
    told = [events.role(), events.content("a"), events.finish(), events.usage(5, 90)]
    gateway = MemoryGateway(told)
    charged = charges_of(gateway)
    await gateway.post({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    (admitted,) = gateway.journal.admissions
    assert admitted.reserved_tokens - admitted.prompt_tokens < 90
    assert charged == [5 + 2 * 90]
