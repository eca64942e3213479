"""A client that leaves frees the engine and its lease at once, and its record holds the count."""

import time
from contextlib import ExitStack
from http.client import HTTPResponse
from socket import socket
from typing import Any

import pytest
from sglang_server import Behind, soon
from weir_dev import WeirDev

LONG = 1200
"""More tokens than any test waits for."""


def events(connection: socket, count: int, received: bytes = b"") -> bytes:
    """What came up to the `count`th event."""
    while received.count(b"data: ") < count:
        more = connection.recv(65536)
        assert more, received
        received += more
    return received


def goes_on(answer: HTTPResponse) -> None:
    """One more event with text came."""
    while b'"content":"' not in answer.readline():
        pass


async def cancelled(weir: WeirDev) -> Any:
    """The one record of a tenant that has cancelled one request, once it is there."""
    deadline = time.monotonic() + 10
    while True:
        rows = await weir.sql("SELECT * FROM usage_records WHERE tenant_id = $1", weir.tenant)
        if rows:
            (row,) = rows
            assert row["outcome"] == "client_cancelled"
            return row
        assert time.monotonic() < deadline, "no usage record"


async def assert_freed(behind: Behind, generated_before: int) -> Any:
    """From the leave on: lease and engine free, the record's count the engine's own."""
    soon(lambda: behind.weir.leases() == 0, "the lease's release", within_s=3)
    soon(lambda: behind.engine.idle, "an idle engine", within_s=6)
    row = await cancelled(behind.weir)
    soon(
        lambda: behind.engine.generated - generated_before == row["output_tokens"],
        f"the engine's count of {row['output_tokens']} tokens",
    )
    return row


async def test_leaving_in_mid_stream(main: Behind) -> None:
    """D01, D04: some tokens came; those until the abort are counted."""
    before = main.engine.generated
    with main.weir.open_chat(max_tokens=LONG, stream=True) as connection:
        events(connection, 4)
        assert main.weir.leases() == 1
    row = await assert_freed(main, before)
    assert 0 < row["output_tokens"] < LONG
    assert row["usage_source"] == "engine_final"
    assert row["prompt_tokens"] > 0


async def test_leaving_a_whole_answer(main: Behind) -> None:
    """C01: without a stream nothing is sent while it runs, and the leave is seen all the same."""
    before = main.engine.generated
    with main.weir.open_chat(max_tokens=LONG, stream=False):
        soon(lambda: main.engine.load()["running"] > 0, "a running request")
    row = await assert_freed(main, before)
    assert row["output_tokens"] < LONG


async def test_leaving_four_choices(main: Behind) -> None:
    """SGLang gives choices ids of their own; the gateway's are all aborted and all counted."""
    before = main.engine.generated
    with main.weir.open_chat(max_tokens=LONG, stream=True, n=4) as connection:
        received = b""
        while not all(b'"index":%d' % index in received for index in range(4)):
            received = events(connection, received.count(b"data: ") + 1, received)
        assert main.weir.leases() == 4
    row = await assert_freed(main, before)
    assert row["sequences"] == 4
    assert 0 < row["output_tokens"] < 4 * LONG


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_leaving_before_the_first_token(tight: Behind, stream: bool) -> None:
    """D10: what waits in the engine is taken out of its queue; nothing was generated."""
    with tight.engine.streaming(max_tokens=400, ignore_eos=True) as other:
        running = other.getresponse()
        goes_on(running)
        with tight.weir.open_chat(max_tokens=50, stream=stream):
            soon(lambda: tight.engine.load()["waiting"] == 1, "a waiting request")
        soon(lambda: tight.weir.leases() == 0, "the lease's release", within_s=3)
        soon(lambda: tight.engine.load()["waiting"] == 0, "an empty queue", within_s=6)
        goes_on(running)
    row = await cancelled(tight.weir)
    assert row["output_tokens"] == 0
    assert row["first_token_at"] is None
    soon(lambda: tight.engine.idle, "an idle engine", within_s=6)


async def test_leaving_while_a_prompt_is_read(main: Behind) -> None:
    """D03: the engine is reading a prompt, in one step, and is not answered for it. Where the step
    outlasts the gateway's patience the record holds what was seen, never more than the engine's."""
    before = main.engine.generated
    question = "Tell me of the river and of the sea. " * 60
    with main.weir.open_chat(text=question, max_tokens=LONG, stream=True):
        soon(lambda: main.weir.leases() == 1, "an admitted request")
    soon(lambda: main.weir.leases() == 0, "the lease's release", within_s=4)
    soon(lambda: main.engine.idle, "an idle engine")
    row = await cancelled(main.weir)
    assert row["output_tokens"] <= main.engine.generated - before < LONG


def test_an_abort_touches_no_other_request(main: Behind) -> None:
    """SGLang aborts every id that begins with the one it is given."""
    tenants = [main.weir.with_new_tenant() for _ in range(3)]
    with ExitStack() as stack:
        opened = [
            stack.enter_context(weir.open_chat(max_tokens=24, stream=True)) for weir in tenants
        ]
        received = [events(connection, 2) for connection in opened]
        with main.weir.open_chat(max_tokens=LONG, stream=True) as leaving:
            events(leaving, 2)
        for connection, seen in zip(opened, received, strict=True):
            while b"[DONE]" not in seen:
                seen += connection.recv(65536)  # noqa: PLW2901 - goes on from what was read
            assert b'"finish_reason":"length"' in seen
            assert b'"error"' not in seen
