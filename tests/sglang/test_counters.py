"""The witness on a real engine: what is sampled of its counters is what the records say."""

from typing import Any

from sglang_server import Behind, soon
from weir_dev import Json


async def samples(behind: Behind) -> list[Any]:
    """Of the only worker, in order."""
    return await behind.weir.sql("SELECT * FROM engine_sample ORDER BY turn")


async def sampled_after(behind: Behind, number: int) -> Any:
    """The first sample that was asked for after so many were there, and one more."""
    found: list[Any] = []
    while len(found) < number + 2:
        found = await samples(behind)
    return found[number + 1]


async def test_rises_are_what_was_recorded(main: Behind) -> None:
    """INV-6: streams, whole answers, several choices and one that is left in mid-stream: over all,
    the rise of each counter is the sum over the attempts, to the token."""
    soon(lambda: main.engine.idle, "an idle engine")
    before = await sampled_after(main, len(await samples(main)))
    asked: list[Json] = [
        {"max_tokens": 5},
        {"max_tokens": 6, "stream": True},
        {"max_tokens": 3, "n": 2},
    ]
    for fields in asked:
        assert main.weir.chat("Name a river.", **fields).status == 200
    with main.weir.open_chat(max_tokens=1200, stream=True) as connection:
        received = b""
        while received.count(b"data: ") < 4:
            received += connection.recv(65536)
    soon(lambda: main.engine.idle, "an idle engine")
    after = await sampled_after(main, len(await samples(main)))
    attempts = await main.weir.sql(
        "SELECT a.prompt_tokens, a.output_tokens, a.cached_prompt_tokens, a.usage_source"
        " FROM usage_attempt a JOIN usage_record r USING (request_id, admitted_at)"
        " WHERE r.tenant_id = $1",
        main.weir.tenant,
    )
    assert len(attempts) == 5
    assert {each["usage_source"] for each in attempts} == {"engine_final"}
    # What it told of for the first time meanwhile was 0 before.
    before = next(each for each in await samples(main) if each["turn"] == before["turn"])
    assert after["life"] == before["life"]
    rises = {
        name: (after[name] or 0) - (before[name] or 0)
        for name in ("prompt_tokens", "output_tokens", "cached_tokens", "requests", "aborted")
    }
    assert rises == {
        "prompt_tokens": sum(each["prompt_tokens"] for each in attempts),
        "output_tokens": sum(each["output_tokens"] for each in attempts),
        "cached_tokens": sum(each["cached_prompt_tokens"] for each in attempts),
        "requests": 5,
        "aborted": 1,
    }


async def test_a_process_has_a_mark_of_its_own(main: Behind, tight: Behind) -> None:
    """Two engines have two marks, each the same from sample to sample."""
    marks = []
    for behind in (main, tight):
        await sampled_after(behind, 0)
        (mark,) = {each["mark"] for each in await samples(behind)}
        assert mark is not None
        marks.append(mark)
    assert marks[0] != marks[1]
