"""`kill -9` of a gateway, of Redis, of Postgres under load: every answered request has exactly one
row, and no lease is left (issue line 5; INV-1, INV-5; C03, R10, M02, M22)."""

import asyncio
import http.client
import os
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest
import servers
from weir_dev import WeirDev

LOAD_S = 8.0
KILL_AT_S = 2.5
CLIENTS = 6


@dataclass
class Load:
    """Clients that ask without pause; what they were answered whole, and what else they saw."""

    system: WeirDev
    answered: list[str] = field(default_factory=list)
    other: Counter[str] = field(default_factory=Counter)

    def client(self, index: int) -> None:
        """One client, until the load is over."""
        until = time.monotonic() + LOAD_S
        asked = 0
        while time.monotonic() < until:
            asked += 1
            try:
                reply = self.system.chat(
                    f"River {index} {asked}", gateway=index, max_tokens=25, stream=bool(asked % 2)
                )
            except (OSError, http.client.HTTPException) as error:
                self.other[type(error).__name__] += 1
                continue
            whole = reply.status == 200 and (asked % 2 == 0 or reply.raw.endswith(b"[DONE]\n\n"))
            if whole:
                self.answered.append(reply.headers["x-request-id"])
            else:
                self.other[str(reply.status)] += 1


def under_load(system: WeirDev, victim: int) -> Load:
    """Run the load and kill a process in the middle of it."""
    load = Load(system)
    clients = [threading.Thread(target=load.client, args=(i,)) for i in range(CLIENTS)]
    for client in clients:
        client.start()
    threading.Event().wait(KILL_AT_S)
    os.kill(victim, signal.SIGKILL)
    for client in clients:
        client.join()
    return load


async def assert_books_balance(load: Load) -> None:
    """One row for each answered request; the same counts as the worker's; nothing held."""
    system = load.system
    await servers.eventually(lambda: system.leases() == 0, within_s=20, what="no lease is left")
    deadline = time.monotonic() + 15
    while True:
        rows = {str(r["request_id"]): r for r in await system.sql("SELECT * FROM usage_records")}
        ledger = system.ledger()
        # Also what was not answered is in the books, if an engine ever saw it.
        expected = {request_id.replace("-", "") for request_id in load.answered} | set(ledger)
        missing = expected - {request_id.replace("-", "") for request_id in rows}
        if not missing:
            break
        assert time.monotonic() < deadline, f"{len(missing)} requests have no row: {missing}"
        await asyncio.sleep(0.1)
    doubles = await system.sql(
        "SELECT request_id FROM usage_records GROUP BY request_id HAVING count(*) > 1"
    )
    assert doubles == []
    for request_id in load.answered:
        row, entry = rows[request_id], ledger[request_id.replace("-", "")]
        assert row["outcome"] == "completed"
        assert row["output_tokens"] == entry["completion_tokens"]
        assert row["prompt_tokens"] == entry["prompt_tokens"]


@pytest.mark.fault
@pytest.mark.timeout(180)
@pytest.mark.parametrize("victim", ["gateway", "redis", "postgres"])
async def test_a_kill_under_load_loses_no_row_and_no_lease(breakable: WeirDev, victim: str) -> None:
    """M22: whatever single thing is killed; and afterwards requests are served again."""
    pids = breakable.ready["pids"]
    pid = pids["gateways"][0] if victim == "gateway" else pids[victim]
    load = await asyncio.to_thread(under_load, breakable, pid)
    assert len(load.answered) > 20
    await servers.eventually(
        lambda: _serves(breakable), within_s=20, what="both gateways serve again"
    )
    await assert_books_balance(load)


def _serves(system: WeirDev) -> bool:
    try:
        return all(system.chat(gateway=index, max_tokens=1).status == 200 for index in (0, 1))
    except (OSError, http.client.HTTPException):
        return False
