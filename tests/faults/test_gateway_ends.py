"""How a gateway's end looks from outside: to its clients, in the books, and to its limits."""

import asyncio
import os
import signal
import time

import pytest
import servers
from weir_dev import WeirDev

pytestmark = [pytest.mark.fault, pytest.mark.timeout(120)]


def _read_to_the_end(system: WeirDev) -> bytes:
    """A long stream, read until the gateway ends it; SIGTERM comes after its first events."""
    with system.open_chat(max_tokens=8000, stream=True) as connection:
        received = b""
        while received.count(b"data: ") < 5:
            received += connection.recv(65536)
        os.kill(system.ready["pids"]["gateways"][0], signal.SIGTERM)
        while piece := connection.recv(65536):
            received += piece
    return received


async def test_a_stream_that_outlives_the_grace_time_ends_explicitly(breakable: WeirDev) -> None:
    """INV-14, M01: the error event and no [DONE]; one row with the engine's own count, unbilled."""
    received = await asyncio.to_thread(_read_to_the_end, breakable)
    assert b"[DONE]" not in received
    assert b'"code":"no_capacity"' in received
    request_id = received.split(b"x-request-id: ")[1].split(b"\r\n")[0].decode()
    record = await breakable.record(request_id, within_s=20)
    assert record["outcome"] == "gateway_lost"
    assert not record["billable"]
    assert record["cost_pico"] == 0 < record["list_cost_pico"]
    entry = breakable.ledger()[request_id.replace("-", "")]
    assert record["output_tokens"] == entry["completion_tokens"] > 0


async def test_a_killed_gateway_frees_its_leases_when_it_is_back(breakable: WeirDev) -> None:
    """C03, R10: at its next start, well before the ten seconds after which they would lapse."""
    breakable.set_limits(max_sequences=1)
    with breakable.open_chat(max_tokens=8000, stream=True) as connection:
        connection.recv(1024)
        assert breakable.leases() == 1
        killed_at = time.monotonic()
        os.kill(breakable.ready["pids"]["gateways"][0], signal.SIGKILL)
        await servers.eventually(
            lambda: breakable.limits(gateway=1)["tenant"]["sequences_running"] == 0,
            within_s=9,
            what="the lease of the killed gateway is free",
        )
    assert time.monotonic() - killed_at < 9
