"""The main job on a real model: text streams, a row with true counts follows (issue line 1)."""

import time

import openai
import pytest
from weir_dev import WeirDev

pytestmark = pytest.mark.timeout(180)


async def test_a_streamed_answer_is_text_and_a_row_with_its_counts(local_system: WeirDev) -> None:
    """M24: usage of the stream = row = the worker's own ledger, within two seconds."""
    reply = local_system.chat(
        "Name three rivers.", stream=True, temperature=0, max_tokens=32,
        stream_options={"include_usage": True},
    )  # fmt: skip
    assert reply.status == 200
    assert reply.raw.endswith(b"data: [DONE]\n\n")
    assert len(reply.text) > 10
    (usage,) = [event["usage"] for event in reply.events if event.get("usage")]
    request_id = reply.headers["x-request-id"]
    record = await local_system.record(request_id, within_s=2)
    assert record["outcome"] == "completed"
    assert record["usage_source"] == "engine_final"
    assert record["prompt_tokens"] == usage["prompt_tokens"]
    assert record["output_tokens"] == usage["completion_tokens"]
    assert record["ttft_ms"] is not None
    entry = local_system.ledger()[request_id.replace("-", "")]
    assert entry["prompt_tokens"] == usage["prompt_tokens"]
    assert entry["completion_tokens"] == usage["completion_tokens"]


async def test_an_unmodified_sdk_gets_the_same_text_streamed_and_whole(
    local_system: WeirDev,
) -> None:
    """The OpenAI SDK, pointed at Weir, at temperature 0."""
    async with openai.AsyncOpenAI(
        base_url=local_system.gateway() + "/v1", api_key=local_system.key()
    ) as client:
        whole = await client.chat.completions.create(
            model=local_system.model,
            messages=[{"role": "user", "content": "What is a river?"}],
            max_tokens=24,
            temperature=0,
        )
        pieces = [
            chunk.choices[0].delta.content or ""
            async for chunk in await client.chat.completions.create(
                model=local_system.model,
                messages=[{"role": "user", "content": "What is a river?"}],
                max_tokens=24,
                temperature=0,
                stream=True,
            )
        ]
        models = [model.id async for model in client.models.list()]
    assert whole.choices[0].message.content == "".join(pieces)
    assert whole.usage is not None
    assert 0 < whole.usage.completion_tokens <= 24
    assert models == [local_system.model]


async def test_a_client_that_leaves_stops_the_real_engine(local_system: WeirDev) -> None:
    """INV-11 on the real model: idle at once, the row holds the engine's own count."""
    with local_system.open_chat(
        text="Write a very long story about a river.", max_tokens=800, stream=True
    ) as connection:
        received = b""
        while received.count(b"data: ") < 5:
            received += connection.recv(65536)
    left_at = time.monotonic()
    while local_system.running():
        assert time.monotonic() < left_at + 1, "the engine ran on"
    while local_system.leases():
        assert time.monotonic() < left_at + 1, "the lease is still held"
    request_id = received.split(b"x-request-id: ")[1].split(b"\r\n")[0].decode()
    record = await local_system.record(request_id)
    assert record["outcome"] == "client_cancelled"
    entry = local_system.ledger()[request_id.replace("-", "")]
    assert record["output_tokens"] == entry["completion_tokens"] > 0
    assert record["billable"]
