"""The engine dies under a running stream. Runs last: nothing starts the engine again."""

import time

import pytest
from sglang_server import Behind


@pytest.mark.fault
async def test_a_killed_worker_is_an_explicit_error(tight: Behind) -> None:
    """INV-14: after kill -9 the stream ends with the error event and no [DONE]; what came is in
    the record, unbilled."""
    with tight.weir.open_chat(max_tokens=400, stream=True) as connection:
        received = b""
        while received.count(b"data: ") < 4:
            received += connection.recv(65536)
        tight.engine.kill()
        killed_at = time.monotonic()
        while not received.endswith(b"\r\n0\r\n\r\n") and (more := connection.recv(65536)):
            received += more
    assert time.monotonic() - killed_at < 6
    last = received.rpartition(b"data: ")[2]
    assert b'"error"' in last
    assert b'"worker_failed"' in last
    assert b"[DONE]" not in received
    assert b'"finish_reason":"stop"' not in received
    request_id = received.partition(b"x-request-id: ")[2].split(b"\r\n")[0].decode()
    row = await tight.weir.record(request_id)
    assert row["outcome"] == "worker_failed"
    assert row["output_tokens"] > 0
    assert not row["billable"]
    assert tight.weir.leases() == 0
    refused = tight.weir.chat(max_tokens=2)
    assert refused.status in (502, 503), refused.raw
