"""A client that leaves frees engine and lease at once (issue line 4, INV-11)."""

import asyncio
import time

import pytest
from weir_dev import WeirDev


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_leave_frees_engine_and_lease(simulated: WeirDev, stream: bool) -> None:
    """C01, D01, D04, S08: idle within a step, one record with the engine's own count to the token,
    lease free."""
    simulated.set_limits(max_sequences=1)
    before = simulated.worker("/weir/ledger")["next"]
    with simulated.open_chat(max_tokens=4000, stream=stream) as connection:
        if stream:
            received = b""
            while received.count(b"data: ") < 10:
                received += connection.recv(65536)
        else:
            while not simulated.running():
                pass
            await asyncio.sleep(0.1)
        assert simulated.leases() == 1
    left_at = time.monotonic()
    while simulated.running():
        assert time.monotonic() < left_at + 0.5, "the engine ran on"
    while simulated.leases():
        assert time.monotonic() < left_at + 0.5, "the lease stayed"
    (entry,) = simulated.worker(f"/weir/ledger?since={before}")["entries"]
    record = await simulated.record(entry["rid"][:32])
    assert record["outcome"] == "client_cancelled"
    assert record["usage_source"] == "engine_final"
    assert record["output_tokens"] == entry["completion_tokens"] > 0
    assert record["prompt_tokens"] == entry["prompt_tokens"]
    assert record["output_tokens"] < 4000
    assert simulated.chat(max_tokens=2).status == 200


async def test_choices_all_stop_with_their_client(simulated: WeirDev) -> None:
    """Each of four choices is aborted, and each one's tokens are in the record."""
    before = simulated.worker("/weir/ledger")["next"]
    with simulated.open_chat(max_tokens=4000, stream=True, n=4) as connection:
        received = b""
        while received.count(b"data: ") < 40:
            received += connection.recv(65536)
    left_at = time.monotonic()
    while simulated.running():
        assert time.monotonic() < left_at + 0.5, "an engine ran on"
    entries = simulated.worker(f"/weir/ledger?since={before}")["entries"]
    assert len(entries) == 4
    record = await simulated.record(entries[0]["rid"][:32])
    assert record["sequences"] == 4
    assert record["output_tokens"] == sum(entry["completion_tokens"] for entry in entries)
    assert record["prompt_tokens"] == entries[0]["prompt_tokens"]
