"""No worker is there: who waits for one, in which order they go on, and who is told what."""

import asyncio

import pytest
from scripted_engine import RecordingConnection
from virtual_time import LoopClock, virtually
from waiting_rooms import settle

from gateway.domain.queue.tickets import Band
from gateway.errors import LimitReached, Overloaded
from gateway.serving.ports import ClientGone
from gateway.serving.queue.absence import Absence
from gateway.serving.queue.asked import Patience
from gateway.serving.queue.refusals import WorkersGone


class Waits:
    """Requests that wait for a worker of pool `m`; `came` is the order in which they went on."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.absence = Absence(lambda pool: pool in self.there, LoopClock())
        self.came: list[str] = []

    async def ask(
        self,
        name: str = "a",
        *,
        pool: str = "m",
        tenant: str = "acme",
        band: Band = Band.INTERACTIVE,
        wait_ms: int = 1_000,
        max_queued: int = 4,
        client: RecordingConnection | None = None,
    ) -> int:
        waited_ms = await self.absence.until_worker(
            pool, tenant, Patience(band, wait_ms, max_queued), client or RecordingConnection()
        )
        self.came.append(name)
        return waited_ms


@virtually
async def test_nobody_waits_while_one_is_there() -> None:
    waits = Waits()
    waits.there = {"m"}
    assert await waits.ask(max_queued=0) == 0


@virtually
async def test_who_waits_goes_on_once_one_is_there() -> None:
    waits = Waits()
    task = asyncio.create_task(waits.ask())
    await asyncio.sleep(0.42)
    assert not task.done()
    waits.there = {"m"}
    assert 420 <= await task <= 480
    assert len(waits.absence) == 0


@virtually
async def test_interactive_goes_first_and_the_earliest_deadline() -> None:
    waits = Waits()
    asked = [
        ("batch", Band.BATCH, 1_000),
        ("late", Band.INTERACTIVE, 9_000),
        ("soon", Band.INTERACTIVE, 8_000),
    ]
    tasks = [
        asyncio.create_task(waits.ask(name, band=band, wait_ms=wait_ms))
        for name, band, wait_ms in asked
    ]
    await asyncio.sleep(0.2)
    waits.there = {"m"}
    await asyncio.gather(*tasks)
    assert waits.came == ["soon", "late", "batch"]


@virtually
async def test_at_its_deadline_it_is_told_that_none_is_there() -> None:
    waits = Waits()
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(WorkersGone):
        await waits.ask(wait_ms=700)
    assert asyncio.get_running_loop().time() - began_s == pytest.approx(0.7)
    assert len(waits.absence) == 0


@virtually
@pytest.mark.parametrize(("max_queued", "wait_ms"), [(0, 1_000), (4, 0)])
async def test_who_may_not_wait_is_told_so_at_once(max_queued: int, wait_ms: int) -> None:
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(WorkersGone):
        await Waits().ask(max_queued=max_queued, wait_ms=wait_ms)
    assert asyncio.get_running_loop().time() == began_s


@virtually
async def test_a_tenant_has_no_more_waiting_than_it_may() -> None:
    waits = Waits()
    tasks = [asyncio.create_task(waits.ask(str(at), max_queued=2)) for at in range(2)]
    await settle()
    with pytest.raises(LimitReached) as refused:
        await waits.ask(max_queued=2)
    assert refused.value.type == "queue"
    another = asyncio.create_task(waits.ask(tenant="globex", max_queued=2))
    elsewhere = asyncio.create_task(waits.ask(pool="other", max_queued=2))
    await settle()
    assert len(waits.absence) == 4
    waits.there = {"m", "other"}
    await asyncio.gather(*tasks, another, elsewhere)
    waits.there = set()
    with pytest.raises(WorkersGone):
        await waits.ask(max_queued=2)


@virtually
async def test_another_models_worker_helps_nobody() -> None:
    waits = Waits()
    waits.there = {"other"}
    with pytest.raises(WorkersGone):
        await waits.ask()


@virtually
async def test_a_client_that_leaves_waits_no_longer() -> None:
    waits, client = Waits(), RecordingConnection()
    task = asyncio.create_task(waits.ask(client=client))
    await settle()
    client.leave()
    with pytest.raises(ClientGone):
        await task
    assert len(waits.absence) == 0


@virtually
async def test_one_who_is_cancelled_leaves_nothing() -> None:
    waits = Waits()
    task = asyncio.create_task(waits.ask(max_queued=1))
    await settle()
    task.cancel()
    await asyncio.wait([task])
    assert len(waits.absence) == 0
    waits.there = {"m"}
    assert await waits.ask(max_queued=1) == 0


@virtually
async def test_a_gateway_that_goes_down_lets_nobody_wait() -> None:
    waits = Waits()
    task = asyncio.create_task(waits.ask())
    await settle()
    waits.absence.stop_all()
    for asking in (task, asyncio.create_task(waits.ask())):
        with pytest.raises(Overloaded, match="shutting down") as refused:
            await asking
        assert refused.value.code == "no_capacity"
