"""What a client, a usage record and the engine count is one number."""

import pytest
from sglang_server import Behind, soon
from weir_dev import Json


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_usage_is_the_rows_and_the_engines(main: Behind, stream: bool) -> None:
    """INV-6: the client's usage, the record and the engine's own counters agree to the token."""
    engine = main.engine
    prompted, generated = engine.counted("prompt_tokens_total"), engine.generated
    asked: Json = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    reply = main.weir.chat("Name two rivers.", max_tokens=7, **asked)
    assert reply.status == 200, reply.raw
    usage = reply.events[-1]["usage"] if stream else reply.json["usage"]
    assert usage["completion_tokens"] == 7
    record = await main.weir.record(reply.headers["x-request-id"])
    assert record["outcome"] == "completed"
    assert record["usage_source"] == "engine_final"
    assert record["prompt_tokens"] == usage["prompt_tokens"]
    assert record["output_tokens"] == usage["completion_tokens"]
    assert record["cached_prompt_tokens"] == usage["prompt_tokens_details"]["cached_tokens"] == 0
    soon(lambda: engine.generated - generated == 7, "the engine's count of the answer")
    assert engine.counted("prompt_tokens_total") - prompted == usage["prompt_tokens"]
    if stream:
        assert reply.raw.rstrip().endswith(b"data: [DONE]")


async def test_a_prompt_is_cached_for_its_tenant_alone(main: Behind) -> None:
    """INV-12: the second identical prompt of a tenant is in the cache, another tenant's is not."""
    question = "Which river runs through Cairo, and where does it end?"
    first = main.weir.chat(question, max_tokens=2)
    second = main.weir.chat(question, max_tokens=2)
    others = main.weir.with_new_tenant().chat(question, max_tokens=2)
    cached = []
    for reply in (first, second, others):
        usage = reply.json["usage"]
        record = await main.weir.record(reply.headers["x-request-id"])
        assert record["cached_prompt_tokens"] == usage["prompt_tokens_details"]["cached_tokens"]
        assert record["prompt_tokens"] == usage["prompt_tokens"]
        cached.append(record["cached_prompt_tokens"])
    assert cached == [0, record["prompt_tokens"] - 1, 0]


async def test_choices_count_their_prompt_once(main: Behind) -> None:
    """Two choices of a prompt: its tokens once, the tokens of both answers."""
    reply = main.weir.chat("Name a river.", max_tokens=3, n=2)
    record = await main.weir.record(reply.headers["x-request-id"])
    single = main.weir.chat("Name a river.", max_tokens=1).json["usage"]
    assert record["prompt_tokens"] == single["prompt_tokens"]
    assert record["output_tokens"] == reply.json["usage"]["completion_tokens"] == 6
    assert record["sequences"] == 2
