import json

import engine_events as events
from memory_gateway import MemoryGateway, data_of, text_of

from billing.domain.usage_record import Outcome, UsageSource


async def test_a_stream_completes() -> None:
    """One record with the engine's own counts, before [DONE]; usage only for whom asked (S02)."""
    gateway = MemoryGateway(events.answer(["a", "b"]))
    client = await gateway.post(stream=True)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.output_tokens) == (5, 2)
    assert record.usage_source is UsageSource.ENGINE_FINAL
    assert (client.status, text_of(client)) == (200, "ab")
    assert data_of(client)[-1] == "[DONE]"
    assert all(event["choices"] for event in data_of(client)[:-1])


async def test_a_whole_answer_completes() -> None:
    """The same, in one body."""
    gateway = MemoryGateway(events.answer(["a", "b"]))
    client = await gateway.post()
    gateway.assert_one_of_each(Outcome.COMPLETED)
    body = json.loads(client.sent)
    assert body["choices"][0]["message"]["content"] == "ab"
    assert body["usage"]["total_tokens"] == 7
