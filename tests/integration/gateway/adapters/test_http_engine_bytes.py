"""The same stream over real HTTP, cut anywhere: the same events, and the same count."""

import asyncio
import gzip
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import engine_events as events
import pytest
from tenant_examples import a_worker

from billing.domain.usage_record import UsageSource
from gateway.adapters.sglang import HttpEngine
from gateway.errors import WorkerFailed
from gateway.serving.choice import Choice
from gateway.wire.upstream import read_event

BODY = b'{"messages":"hi"}'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n%btransfer-encoding: chunked\r\n\r\n"
ANSWER = [
    events.role(),
    events.content("två åar", usage=events.counts(5, 2)),
    events.content("b"),
    events.finish(),
    events.usage(5, 4, cached=1),
]


def sse(*data: bytes, end: bytes = b"\n") -> bytes:
    """As any server may write it: a comment, another field, data of two lines."""
    written = b"\xef\xbb\xbf: hello" + end + end
    for each in data:
        # Between two members of an object, so that the lines joined are the same JSON.
        first, comma, rest = each.partition(b", ")
        lines = [first + comma, rest] if rest else [each]
        written += b"id: 7" + end + b"".join(b"data: " + line + end for line in lines) + end
    return written


def chunks(pieces: Sequence[bytes], *, ended: bool = True) -> list[bytes]:
    """Each piece one chunk of the transfer."""
    coded = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]
    return [*coded, b"0\r\n\r\n"] if ended else coded


def cut(whole: bytes, seed: int | None) -> list[bytes]:
    """Byte by byte, or anywhere."""
    if seed is None:
        return [whole[at : at + 1] for at in range(len(whole))]
    draw = random.Random(seed)  # noqa: S311 - a draw that can be repeated
    places = sorted(draw.randrange(len(whole)) for _ in range(12))
    return [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]


@asynccontextmanager
async def engine_that_writes(pieces: Sequence[bytes]) -> AsyncIterator[str]:
    """A server that answers with these bytes, each a packet of its own, and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(BODY)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def read(pieces: Sequence[bytes], found: list[bytes] | None = None) -> list[bytes]:
    """The events of a stream that comes so; also kept in `found`, as they come."""
    found = [] if found is None else found
    engine = HttpEngine(connect_timeout_ms=2_000, abort_drain_ms=100)
    try:
        async with asyncio.timeout(10), engine_that_writes(pieces) as url:
            stream = engine.stream(a_worker(url=url), "/v1/chat/completions", "id", BODY)
            try:
                async for data in stream:
                    found.append(data)
            finally:
                await stream.aclose()
    finally:
        await engine.aclose()
    return found


def counted(data: Sequence[bytes]) -> tuple[int | None, int, UsageSource]:
    choice = Choice(index=0, prompt=0, body=lambda worker, attempt: ("", b""))
    for each in data:
        choice.note(read_event(each), 0)
    assert choice.usage is not None
    return choice.usage.prompt_tokens, choice.output_tokens, choice.source


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CR LF", "CR"])
@pytest.mark.parametrize("seed", [None, *range(5)])
async def test_wherever_the_bytes_are_cut(seed: int | None, end: bytes) -> None:
    """Inside a text, a count, a line's end, a chunk's own frame: nothing is lost or double."""
    whole = sse(*ANSWER, b"[DONE]", end=end)
    framed = b"".join(chunks(cut(whole, seed)))
    found = await read([HEAD % b"", *cut(framed, None if seed is None else seed + 100)])
    assert [each.replace(b"\n", b"") for each in found] == ANSWER
    assert counted(found) == (5, 4, UsageSource.ENGINE_FINAL)


async def test_what_follows_done_is_not_read() -> None:
    """[DONE] is an answer's end: the last count before it holds, at once."""
    late = sse(*ANSWER[:-1], b"[DONE]", ANSWER[-1])
    found = await read([HEAD % b"", *chunks([late])])
    assert counted(found) == (5, 2, UsageSource.ENGINE_PROGRESS)


@pytest.mark.parametrize("missing", [1, 40])
async def test_a_body_that_breaks_off_is_a_failure(missing: int) -> None:
    """D16: its frame says that more was to come. What had come is still read."""
    framed = b"".join(chunks([sse(each) for each in ANSWER], ended=False))
    found: list[bytes] = []
    with pytest.raises(WorkerFailed):
        await read([HEAD % b"", framed[:-missing]], found)
    assert len(found) >= len(ANSWER) - 1


async def test_an_end_without_its_last_chunk_is_one_after_done() -> None:
    """Who said [DONE] and hangs up has answered."""
    found = await read([HEAD % b"", *chunks([sse(*ANSWER, b"[DONE]")], ended=False)])
    assert counted(found) == (5, 4, UsageSource.ENGINE_FINAL)


async def test_a_compressed_answer_is_a_failure() -> None:
    """It was not asked for, and would read as no answer at all."""
    body = gzip.compress(sse(*ANSWER, b"[DONE]"))
    with pytest.raises(WorkerFailed, match="encoded"):
        await read([HEAD % b"content-encoding: gzip\r\n", *chunks([body])])
