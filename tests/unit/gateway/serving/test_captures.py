"""INV-6, INV-12: what a client reads is what SGLang 0.5.23 sent, as captured from its wire
(`tests/captures`): every choice with the engine's bytes, every count as it was said."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from memory_gateway import MemoryGateway
from scripted_engine import RecordingConnection

from billing.domain.usage_record import Outcome
from gateway.wire.bodies import Endpoint
from gateway.wire.sse import DONE, SseReader

FOLDER = Path(__file__).resolve().parents[3] / "captures"
CAPTURES = sorted(path.name for path in FOLDER.glob("*.sse"))
RawFields = dict[str, msgspec.Raw]
NEVER_SAID = 50


def events_of(stream: bytes) -> list[bytes]:
    """The events of a stream, without its [DONE]."""
    found = list(SseReader().feed(stream))
    assert found.pop() == DONE
    return found


def choices_of(event: bytes) -> list[dict[str, bytes]]:
    """The bytes of every value of every choice, and of its delta; which choice it is left out."""
    raw = msgspec.json.decode(event, type=RawFields)["choices"]
    found = []
    for choice in msgspec.json.decode(raw, type=list[RawFields]):
        fields = {name: bytes(value) for name, value in choice.items() if name != "index"}
        delta = msgspec.json.decode(fields.pop("delta", b"{}"), type=RawFields)
        found.append(fields | {f"delta.{name}": bytes(value) for name, value in delta.items()})
    return found


def index_of(event: bytes) -> int | None:
    choices: list[dict[str, int]] = json.loads(event)["choices"]
    return choices[0]["index"] if choices else None


def counts_of(event: bytes) -> list[Any]:
    """Prompt, output, total and cached of the usage in an event; empty where there is none."""
    usage = json.loads(event).get("usage")
    if usage is None:
        return []
    details = usage["prompt_tokens_details"]
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    return [*(usage[name] for name in names), details and details["cached_tokens"]]


async def through(
    events: list[bytes], *, stream: bool, **more: object
) -> tuple[MemoryGateway, RecordingConnection]:
    """A client's answer, where the engine sends these events: each choice in a stream of its own,
    as a gateway asks for it."""
    indices = sorted({index for each in events if (index := index_of(each)) is not None})
    alone = len(indices) == 1
    gateway = MemoryGateway(
        *([each for each in events if alone or index_of(each) == index] for index in indices)
    )
    said = [counts_of(each) for each in events if counts_of(each)]
    body: dict[str, object] = {"model": "m", "n": len(indices), "stream": stream, **more}
    # An answer that is shorter than it may be, and ended by its length, was cut short.
    body["max_tokens"] = said[-1][1] if said and alone else NEVER_SAID
    endpoint: Endpoint = "chat"
    if json.loads(events[0])["object"] == "text_completion":
        endpoint = "completions"
        body["prompt"] = "hi"
    else:
        body["messages"] = [{"role": "user", "content": "hi"}]
    client = await gateway.serve(gateway.a_client(body), endpoint=endpoint)
    assert client.status == 200, client.sent
    return gateway, client


@pytest.mark.parametrize("name", CAPTURES)
async def test_a_client_reads_what_the_engine_sent(name: str) -> None:
    """Streamed, nothing of a choice is added, lost, joined or written otherwise."""
    engines = events_of((FOLDER / name).read_bytes())
    gateway, client = await through(engines, stream=True)
    gateway.assert_one_of_each(Outcome.COMPLETED)
    clients = events_of(client.sent)
    for index in {index_of(each) for each in clients}:
        sent = [choices_of(each) for each in engines if index_of(each) == index]
        assert [choices_of(each) for each in clients if index_of(each) == index] == sent
    assert len(clients) == len([each for each in engines if index_of(each) is not None])
    assert [counts_of(each) for each in clients if counts_of(each)] == []


@pytest.mark.parametrize("name", CAPTURES)
async def test_a_client_that_asks_reads_the_engines_counts(name: str) -> None:
    """Each progress, the last count, and the row's."""
    engines = events_of((FOLDER / name).read_bytes())
    said = [counts_of(each) for each in engines if counts_of(each)]
    options = {"include_usage": True, "continuous_usage_stats": True}
    gateway, client = await through(engines, stream=True, stream_options=options)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    shown = [counts_of(each) for each in events_of(client.sent) if counts_of(each)]
    row = [record.prompt_tokens, record.output_tokens]
    assert shown[-1][:2] == row
    if len({index_of(each) for each in engines} - {None}) > 1 or not said:
        return  # the pair's one account is of both; an engine that said nothing was counted
    assert shown[-1] == said[-1]
    progress = [counts_of(each) for each in engines if index_of(each) is not None]
    assert shown[:-1] == [each for each in progress if each]


@pytest.mark.parametrize("name", CAPTURES)
async def test_a_whole_answer_is_the_streams_text(name: str) -> None:
    """Joined, to the character."""
    engines = events_of((FOLDER / name).read_bytes())
    _, client = await through(engines, stream=False)
    for choice in json.loads(client.sent)["choices"]:
        text = ""
        for each in engines:
            if index_of(each) == choice["index"]:
                (sent,) = json.loads(each)["choices"]
                text += sent.get("text") or sent.get("delta", {}).get("content") or ""
        assert (choice["text"] if "text" in choice else choice["message"]["content"]) == text
        assert choice["finish_reason"] == "length"


def test_the_captures_are_there() -> None:
    """An empty folder would pass everything."""
    assert len(CAPTURES) == 7
