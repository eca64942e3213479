"""Large bodies are read by a process of their own, and nothing else waits for it."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.adapters import body_reader
from gateway.adapters.body_reader import HERE_BYTES_MAX, BodyReader
from gateway.errors import InvalidRequest, Overloaded
from gateway.wire.request import CompletionRequest

BODY_BYTES = 8 * 1024 * 1024 - 1024
"""As large as a body may be by default."""
STOPPED_S_MAX = 0.02
"""The loop is never stopped for longer by one body; asserted at three times that."""
DEADLINE_S = 30.0


def chat(content: object, **fields: object) -> bytes:
    messages = [{"role": "user", "content": content}]
    return json.dumps({"model": "m", "messages": messages, **fields}).encode()


def filled(piece: bytes, before: bytes, after: bytes) -> bytes:
    """As many pieces, with commas between, as a body has room for."""
    times = (BODY_BYTES - len(before) - len(after)) // (len(piece) + 1)
    return before + b",".join([piece] * times) + after


HI = b'{"model":"m","messages":[{"role":"user","content":"hi"}]'
BODIES = {
    "one text": chat("word " * (BODY_BYTES // 5 - 40)),
    "escapes": chat("é" * (BODY_BYTES // 6 - 40)),
    "messages": filled(b'{"role":"user","content":"hi"}', b'{"model":"m","messages":[', b"]}"),
    "parts": filled(
        b'{"type":"text","text":"hi"}',
        b'{"model":"m","messages":[{"role":"user","content":[', b"]}]}",
    ),
    "numbers": filled(b"1", HI + b',"metadata":{"a":[', b"]}}"),
    "keys": filled(b'"user":"a"', HI + b",", b"}"),
}  # fmt: skip


@pytest.fixture
async def reader() -> AsyncIterator[BodyReader]:
    made = BodyReader()
    yield made
    await made.stop()


async def read(reader: BodyReader, body: bytes, tenant: str = "acme") -> CompletionRequest:
    async with asyncio.timeout(DEADLINE_S):
        return await reader.read("chat", body, {}, tenant_id=tenant)


def pid_of(reader: BodyReader) -> int:
    assert reader._process is not None
    return reader._process.pid


async def longest_stop_s(work: asyncio.Task[CompletionRequest]) -> float:
    """The longest time for which nothing else ran while the work was under way: of this thread's
    own, since other programs stop it too."""
    longest, last = 0.0, time.thread_time()
    while not work.done():
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, last = max(longest, now - last), now
    return longest


@pytest.mark.parametrize("kind", BODIES)
async def test_the_event_loop_goes_on(reader: BodyReader, kind: str) -> None:
    """8 MB of whatever kind."""
    await read(reader, chat("x" * (HERE_BYTES_MAX + 1)))
    work = asyncio.create_task(read(reader, BODIES[kind]))
    assert await longest_stop_s(work) <= 3 * STOPPED_S_MAX
    assert work.result().sequences == 1


async def test_a_small_body_starts_no_process(reader: BodyReader) -> None:
    """To hand it over would cost more than to read it."""
    assert (await read(reader, chat("hi"))).prompt_characters == (2,)
    assert reader._process is None


async def test_an_error_is_the_readers_own(reader: BodyReader) -> None:
    """It names the field, as anywhere."""
    with pytest.raises(InvalidRequest) as caught:
        await read(reader, chat("x" * HERE_BYTES_MAX, max_tokens=0))
    assert caught.value.param == "max_tokens"


async def test_a_process_that_died_is_started_again(reader: BodyReader) -> None:
    """Before the next body, or while it has one."""
    body = chat("x" * HERE_BYTES_MAX)
    await read(reader, body)
    first = pid_of(reader)
    os.kill(first, signal.SIGKILL)
    await read(reader, body)
    second = pid_of(reader)
    assert second != first
    os.kill(second, signal.SIGSTOP)
    work = asyncio.create_task(read(reader, body))
    await asyncio.sleep(0.05)
    os.kill(second, signal.SIGKILL)
    assert (await work).prompt_characters == (HERE_BYTES_MAX,)


async def test_what_cannot_be_read_is_a_503(
    reader: BodyReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never read on the loop instead: it may be what the process died of."""
    monkeypatch.setattr(body_reader, "_COMMAND", (sys.executable, "-c", ""))
    with pytest.raises(Overloaded) as caught:
        await read(reader, chat("x" * HERE_BYTES_MAX))
    assert caught.value.code == "no_capacity"


async def test_a_cancelled_reading_shifts_no_reply(reader: BodyReader) -> None:
    """The next body gets its own."""
    await read(reader, chat("x" * HERE_BYTES_MAX))
    given_up = asyncio.create_task(read(reader, BODIES["messages"]))
    await asyncio.sleep(0.05)
    given_up.cancel()
    await asyncio.wait([given_up])
    found = await read(reader, chat("x" * (HERE_BYTES_MAX + 5)))
    assert found.prompt_characters == (HERE_BYTES_MAX + 5,)


async def test_one_tenant_waits_for_itself(reader: BodyReader) -> None:
    """Ten large bodies of one tenant: another's is the second to be read, not the eleventh."""
    body = BODIES["messages"]
    done: list[str] = []

    async def one(tenant: str) -> None:
        await read(reader, body, tenant)
        done.append(tenant)

    tasks = [asyncio.create_task(one("acme")) for _ in range(4)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(one("globex")))
    await asyncio.gather(*tasks)
    assert done.index("globex") <= 1


async def test_it_does_not_outlive_its_gateway(tmp_path: Path) -> None:
    """Killed, not stopped: nothing is left behind."""
    program = tmp_path / "holder.py"
    program.write_text(
        "import asyncio\n"
        "from gateway.adapters.body_reader import BodyReader\n"
        "async def main():\n"
        "    reader = BodyReader()\n"
        '    await reader.read(\'completions\', b\'{"model":"m","prompt":"\''
        " + b'x' * 200_000 + b'\"}', {}, tenant_id='t')\n"
        "    print(reader._process.pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, str(program), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        pid = int(await parent.stdout.readline())
        parent.kill()
        await parent.wait()
        while _runs(pid):  # noqa: ASYNC110 - another process's end has no event here
            await asyncio.sleep(0.05)


def _runs(pid: int) -> bool:
    """Whether it runs: an orphan that ended may stay a zombie where nobody reaps it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
