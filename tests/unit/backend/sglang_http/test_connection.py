"""Events written straight to a connection are those that the slow way writes."""

from asyncio import Transport

import pytest
from msgspec import UNSET

from backend.sglang_http.answers import Answer, ChatChunkChoice, ChatDelta, event, wire_usage
from backend.sglang_http.connection import Connection, ContentWriter, connection_of
from backend.sglang_http.generation import Generation, Usage


class Written(Transport):
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep it."""
        self.data += data

    def is_closing(self) -> bool:
        """Never."""
        return False


class Flow:
    """A flow that a test pauses."""

    write_paused = False


def answer(text: str, usage: Usage | None = None) -> bytes:
    """An event as the slow way encodes it."""
    choices = [ChatChunkChoice(0, ChatDelta(content=text))]
    told = UNSET if usage is None else wire_usage(usage)
    return event(Answer("r", "chat.completion.chunk", 7, "m", choices, usage=told))


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("cached", [0, None, 3])
@pytest.mark.parametrize("text", [" word", 'a "quoted"\n\\', "ü€\U0001f600", "\x00"])
def test_same_bytes(text: str, *, cached: int | None, continuous: bool) -> None:
    """One chunk of HTTP/1.1 around the very event."""
    transport, generation = Written(), Generation("r", 5)
    generation.cached_tokens = cached
    generation.completion_tokens = 2
    writer = ContentWriter(
        Connection(transport, Flow()), generation, answer, continuous_usage=continuous
    )
    writer.write(text)
    wanted = answer(text, Usage(5, 2, cached) if continuous else None)
    assert transport.data == b"%x\r\n%b\r\n" % (len(wanted), wanted)


async def test_a_paused_connection_takes_nothing() -> None:
    """The text waits for the reader, merged; what is unpaused is written at once."""
    transport, flow, generation = Written(), Flow(), Generation("r", 5)
    connection = Connection(transport, flow)
    writer = ContentWriter(connection, generation, answer, continuous_usage=False)
    generation.push("a", 1)
    assert (await generation.take(writer)).text == "a"
    assert transport.data == b""
    flow.write_paused = True
    generation.push("b", 1)
    generation.push("c", 1)
    assert (await generation.take(writer)).text == "bc"


def test_where_no_connection_is_shown() -> None:
    """Another server's scope has none."""
    assert connection_of({"type": "http"}) is None
    assert connection_of({"extensions": {"tls": {}}}) is None
