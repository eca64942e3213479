"""Reported cases of limits that only a whole request shows."""

import asyncio

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, error_of, until
from scripted_engine import Step
from tenant_examples import a_tenant

from billing.domain.usage_record import Outcome
from gateway.domain.tenant import Limits

FORMS = pytest.mark.parametrize("stream", [True, False])


@FORMS
async def test_c07_a_stream_counts_for_as_long_as_it_streams(stream: bool) -> None:
    """C07: with a limit of one the second is refused while the first still runs, streaming or not,
    and served as soon as it has ended."""
    going_on = asyncio.Event()
    script: list[Step] = [events.content("a"), going_on, *events.answer(["b"])]
    gateway = MemoryGateway(script, events.answer(["c"]))
    gateway.directory.one_tenant = a_tenant(Limits(max_sequences=1))
    running = asyncio.create_task(gateway.post(stream=stream))
    await until(lambda: gateway.leases.held == 1 and gateway.engine.streams)
    for _ in range(3):
        refused = await gateway.post(stream=stream)
        assert (refused.status, error_of(refused)["type"]) == (429, "sequences")
    going_on.set()
    assert (await running).status == 200
    assert (await gateway.post(stream=stream)).status == 200
    assert len(gateway.journal.admissions) == 2
    gateway.assert_at_rest()


@FORMS
async def test_r06_cached_prompt_tokens_count_in_full(stream: bool) -> None:
    """R06: 1,000 of prompt, 900 of them found in the prefix cache, and 50 of output: 1,050 are
    charged to the minute. Only the price of a cached token is another."""
    answer = [*events.answer(["a"])[:-1], events.usage(1_000, 50, cached=900)]
    gateway = MemoryGateway(answer)
    gateway.directory.one_tenant = a_tenant(Limits(tpm=10_000))
    await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.cached_prompt_tokens) == (1_000, 900)
    assert gateway.ledger.states["acme"].scopes["tenant"].window.tokens == 1_050
