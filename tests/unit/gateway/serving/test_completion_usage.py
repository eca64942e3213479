"""What is counted, whatever the client asked and the provider said: rows of the straight line."""

import json

import engine_events as events
import pytest
from memory_gateway import MemoryGateway, data_of
from scripted_engine import Step
from tenant_examples import COUNTED, a_tenant

from billing.domain.usage_record import Outcome, UsageSource

FORMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
ASKS = pytest.mark.parametrize("asks", [None, False, True])


def stream_with(usage: dict[str, object]) -> list[Step]:
    """An answer whose last chunk has this usage."""
    last = json.dumps({"choices": [], "usage": usage}).encode()
    return [events.content("a"), events.finish(), last]


@ASKS
async def test_s22_a_row_is_complete_whatever_usage_the_client_asked_for(asks: bool | None) -> None:
    """S01, S04, S22: served and counted by the engine, whether the client asks for usage, forbids
    it or says nothing; S25: one row each, settled once."""
    gateway = MemoryGateway(events.answer(["a", "b"]))
    options = {} if asks is None else {"stream_options": {"include_usage": asks}}
    client = await gateway.post(stream=True, **options)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.output_tokens) == (5, 2)
    assert record.usage_source is UsageSource.ENGINE_FINAL
    assert client.status == 200
    assert [bool(event["choices"]) for event in data_of(client)[:-1]].count(False) == bool(asks)


@FORMS
async def test_s15_the_engines_count_is_the_row(stream: bool) -> None:
    """S15: admission counted 5, the engine 7; the engine's is recorded, charged and shown."""
    gateway = MemoryGateway(stream_with(events.counts(7, 3, cached=2)))
    gateway.directory.one_tenant = a_tenant(COUNTED)
    client = await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.cached_prompt_tokens, record.output_tokens) == (7, 2, 3)
    assert gateway.ledger.settlements[0][1] == 10
    if not stream:
        assert json.loads(client.sent)["usage"]["prompt_tokens"] == 7


async def test_s14_an_image_is_counted_by_the_engine() -> None:
    """S14: a tokenizer sees 5 tokens of text, the engine 1,105 with the image. The row has the
    engine's; what admission made of it stays in the journal's own entry."""
    gateway = MemoryGateway(stream_with(events.counts(1_105, 3)))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    content = [{"type": "text", "text": "What is it?"}, image]
    await gateway.post(messages=[{"role": "user", "content": content}])
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.usage_source) == (1_105, UsageSource.ENGINE_FINAL)
    assert gateway.journal.admissions[0].prompt_tokens == 5
    assert json.loads(gateway.engine.streams[0].body)["messages"][0]["content"][1] == image


async def test_s10_more_cached_than_prompt_is_no_negative_count() -> None:
    """S10: 72,960 cached of 56,322: all of it cached, nothing below zero, and flagged."""
    gateway = MemoryGateway(stream_with(events.counts(56_322, 1, cached=72_960)))
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.cached_prompt_tokens) == (56_322, 56_322)
    assert record.usage_flags == ("cached_over_prompt",)


@FORMS
async def test_s13_what_a_provider_leaves_out_is_in_the_row_and_flagged(stream: bool) -> None:
    """S13: xAI's real usage, whose output leaves out 672 tokens of reasoning; the client is told
    what it is billed for."""
    usage = {
        "prompt_tokens": 2640,
        "completion_tokens": 182,
        "total_tokens": 3494,
        "prompt_tokens_details": {"cached_tokens": 473},
        "completion_tokens_details": {"reasoning_tokens": 672},
    }
    gateway = MemoryGateway(stream_with(usage))
    client = await gateway.post(
        stream=stream, **({"stream_options": {"include_usage": True}} if stream else {})
    )
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.cached_prompt_tokens) == (2640, 473)
    assert (record.output_tokens, record.reasoning_tokens) == (854, 672)
    assert record.usage_flags == ("count_inferred",)
    shown = data_of(client)[-2]["usage"] if stream else json.loads(client.sent)["usage"]
    assert (shown["completion_tokens"], shown["total_tokens"]) == (854, 3494)


@FORMS
async def test_s26_usage_on_a_chunk_of_text_is_kept(stream: bool) -> None:
    """S26: on the last chunk with text and nowhere after: the count is the row's, as progress."""
    script = [events.content("a"), events.content("b", usage=events.counts(7, 2)), events.finish()]
    gateway = MemoryGateway(script)
    await gateway.post(stream=stream)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.output_tokens) == (7, 2)
    assert record.usage_source is UsageSource.ENGINE_PROGRESS


@pytest.mark.parametrize("maximum", [0, -5])
async def test_s03_no_maximum_below_one_is_reserved(maximum: int) -> None:
    """S03: 400 that names the field; nothing held."""
    gateway = MemoryGateway()
    client = await gateway.post(max_tokens=maximum)
    assert client.status == 400
    assert json.loads(client.sent)["error"]["type"] == "invalid_request_error"
    assert json.loads(client.sent)["error"]["param"] == "max_tokens"
    gateway.assert_nothing_admitted()


async def test_a_refusal_names_the_tenants_own_field() -> None:
    """INV-12: what the engine said is not shown; which field it was is."""
    words = "top_p must be in (0, 1], got 0.5. [/srv/engine.py]"
    gateway = MemoryGateway([events.error(400, words)])
    client = await gateway.post(top_p=0.5, temperature=1)
    error = json.loads(client.sent)["error"]
    assert (client.status, error["param"], error["code"]) == (400, "top_p", "invalid_value")
    assert "srv" not in error["message"]
    gateway.assert_one_of_each(Outcome.REFUSED)
