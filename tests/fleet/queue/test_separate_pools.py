"""A worker that is reserved for batch beside one that is not (simulated, over HTTP): which of them
generated what, by their own ledgers, from two gateways."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import servers
from weir_dev import Json, Reply, WeirDev, weir_dev

GATEWAYS = 2
EACH = 8
LATE = {"x-weir-max-wait-ms": "300"}


@pytest.fixture
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeirDev]:
    """Two gateways, two workers, and a tenant that may wait."""
    options = ("--engine", "simulated", "--gateways", str(GATEWAYS), "--workers", "2")
    with weir_dev(tmp_path_factory.mktemp("pools"), *options) as started:
        started.set_limits(max_queued=100, max_wait_ms=30_000)
        yield started


def live(system: WeirDev, gateway: int = 0) -> Json:
    """`/admin/v1/live` as this gateway shows it."""
    return dict(system.admin("GET", "/admin/v1/live", gateway=gateway).json)


def second_worker(system: WeirDev) -> Json:
    """As it is registered."""
    url = system.ready["workers"][1]["url"]
    registered = system.admin("GET", "/admin/v1/workers").json["items"]
    return next(each for each in registered if each["url"] == url)


async def until_known(system: WeirDev, **fields: object) -> None:
    """Every gateway knows that the second worker is so."""
    name = second_worker(system)["id"]

    def is_known(gateway: int) -> bool:
        (worker,) = (each for each in live(system, gateway)["workers"] if each["id"] == name)
        return all(worker[field] == value for field, value in fields.items())

    for gateway in range(GATEWAYS):
        await servers.eventually(partial(is_known, gateway), what="every gateway knows")


async def reserve(system: WeirDev, request_class: str | None) -> None:
    """Keep the second worker for a class."""
    known = second_worker(system)
    fields = {name: known[name] for name in ("id", "model", "url", "kind", "engine")}
    put = system.admin("POST", "/admin/v1/workers", {**fields, "class": request_class})
    assert put.status == 201, put.raw
    await until_known(system, **{"class": request_class})


def ask_all(
    system: WeirDev, *classes: str, headers: dict[str, str] | None = None
) -> dict[str, list[Reply]]:
    """`EACH` requests of each class at once, at both gateways in turn."""
    with ThreadPoolExecutor(EACH * len(classes)) as threads:
        asked = {
            name: [
                threads.submit(
                    system.post,
                    system.body(f"{name} {number}"),
                    gateway=number,
                    token=system.key(request_class=name),
                    headers=headers,
                )
                for number in range(EACH)
            ]
            for name in classes
        }
        return {name: [each.result() for each in tasks] for name, tasks in asked.items()}


def ids(replies: list[Reply]) -> set[str]:
    assert [each.status for each in replies] == [200] * len(replies)
    return {each.headers["x-request-id"].replace("-", "") for each in replies}


def served_by(system: WeirDev, worker: int) -> set[str]:
    """Requests that this worker generated something for."""
    entries = system.worker("/weir/ledger", index=worker)["entries"]
    return {entry["rid"][:32] for entry in entries if not entry["health"]}


async def test_each_class_is_served_by_its_own_worker(system: WeirDev) -> None:
    """Also while the other is idle or drains, and until it is reserved no longer."""
    await reserve(system, "batch")
    answered = ask_all(system, "interactive", "batch")
    interactive, batch = ids(answered["interactive"]), ids(answered["batch"])
    assert (served_by(system, 0), served_by(system, 1)) == (interactive, batch)
    pools = [(each["model"], each["class"]) for each in live(system)["pools"]]
    assert pools == [(system.model, None), (system.model, "batch")]
    text = system.request("GET", system.gateway() + "/metrics").raw.decode()
    assert f'weir_pool_waiting_requests{{model="{system.model}",request_class="batch"}} 0' in text

    name = second_worker(system)["id"]
    assert system.admin("POST", f"/admin/v1/workers/{name}/drain").status == 200
    await until_known(system, draining=True)
    began = time.monotonic()
    for reply in ask_all(system, "batch", headers=LATE)["batch"]:
        assert (reply.status, reply.error["code"]) == (503, "no_worker")
    assert time.monotonic() - began >= 0.3
    more = ids(ask_all(system, "interactive")["interactive"])
    assert served_by(system, 0) == interactive | more

    await reserve(system, None)
    elsewhere = ids(ask_all(system, "batch")["batch"])
    assert served_by(system, 0) == interactive | more | elsewhere
    assert served_by(system, 1) == batch
