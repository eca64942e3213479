"""Redis comes back with what it had a while ago, as a restored backup or a snapshot has it: what
tenants used since is not given to them a second time."""

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import redis
from breakable_store import Store
from redis_faults import CUT_OFF, TTL_MS, WITH_STORE, TwoGateways, of_a_new_tenant
from redis_faults import two_gateways as two_gateways_on

pytestmark = [pytest.mark.fault, pytest.mark.timeout(150)]
KNOWN_AGAIN_S = 3 * (TTL_MS / 1000 + 3.0)
"""Three times a lease time and the 3 s in which the list of gateways becomes whole."""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[TwoGateways]:
    """Gateways whose store has never lost anything."""
    with two_gateways_on(tmp_path) as started:
        yield started


def files_of(store: Store) -> Path:
    return store.folder / f"valkey-{store.starts}" / "valkey" / "appendonlydir"


def back_up(store: Store, to: Path) -> None:
    """Copy its files, and wait until gateways have been told more than is in them."""
    shutil.copytree(files_of(store), to)
    with store.client() as client:
        target = beats(client) + 4
        deadline = time.monotonic() + 5
        while beats(client) < target:
            assert time.monotonic() < deadline, "its pulse stands still"
            time.sleep(0.02)


def beats(client: redis.Redis) -> int:
    """Of the gateway that was told least."""
    values: Any = [client.get(key) for key in client.keys("weir:pulse:*")]
    return min(map(int, values))


def restore(store: Store, copy: Path) -> None:
    """`kill -9`, and the copy in place of its files."""
    store.kill()
    shutil.rmtree(files_of(store))
    shutil.copytree(copy, files_of(store))
    store.start()


def spent(system: TwoGateways) -> Decimal | None:
    """Of this month, where it is known."""
    with suppress(KeyError):
        shown = system.limits()["tenant"]["spent_this_month"]
        return None if shown is None else Decimal(shown)
    return None


def test_nothing_is_given_twice(system: TwoGateways, tmp_path: Path) -> None:
    """INV-3 and the budget: 120 of 120 tokens were used and money was spent since the backup.
    Whoever has a `tpm` waits as after a loss, at either gateway; a month is what Postgres says."""
    talker = of_a_new_tenant(system, tpm=120)
    payer = of_a_new_tenant(system, monthly_budget="5.00")
    for each in (talker, payer):
        each.served()
    back_up(system.store, tmp_path / "backup")
    while talker.timed(max_tokens=20).outcome != "rate_limit_exceeded":
        pass
    for _ in range(5):
        payer.served(max_tokens=50)
    before = spent(payer)
    assert before is not None
    restore(system.store, tmp_path / "backup")
    began = time.monotonic()
    words: set[str] = set()
    while time.monotonic() < began + TTL_MS / 1000:
        for at in (CUT_OFF, WITH_STORE):
            assert talker.timed(at, max_tokens=20).outcome == "admission_unavailable"
            words |= set(talker.words(at)[1])
    assert "redis_empty" in words
    while payer.timed(max_tokens=1).outcome != "200":
        assert time.monotonic() < began + KNOWN_AGAIN_S
    after = spent(payer)
    assert after is not None
    assert after > before, "what it has spent since the backup is known"
