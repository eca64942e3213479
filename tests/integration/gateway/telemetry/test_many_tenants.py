"""Ten thousand tenants leave the number of series as it was."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import pytest
from metric_labels import strangers
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from recording_worker import RecordingWorker, recording_worker
from weir_dev import WeirDev, together, weir_dev

TENANTS = 10_000
ASKING = 40
"""So many of them send through the gateway; all have usage in Postgres."""
AT_ONCE = 4
WITHIN_S = 30.0
MAKE_TENANTS = """
INSERT INTO tenant (id, name, currency, time_zone, limits, limits_version)
SELECT 'many-' || n, 'Many ' || n, 'USD', 'UTC', '{}', 0 FROM generate_series(1, $1) AS n
"""
MAKE_KEYS = """
INSERT INTO api_key (id, tenant_id, name, class, digest, secret_hint, limits, limits_version)
SELECT 'key-of-many-' || n, 'many-' || n, 'first',
       CASE n % 2 WHEN 0 THEN 'interactive' ELSE 'batch' END,
       sha256(convert_to('sk-weir-many-' || n, 'UTF8')), 'many', '{}', 0
FROM generate_series(1, $1) AS n
"""
MAKE_USAGE = """
INSERT INTO usage_record
SELECT (jsonb_populate_record(NULL::usage_record, to_jsonb(one) || jsonb_build_object(
    'tenant_id', 'many-' || n, 'api_key_id', 'key-of-many-' || n,
    'request_id', left(one.request_id::text, 19) || substr(md5(n::text), 1, 4) || '-'
        || substr(md5(n::text), 5, 12)))).*
FROM (SELECT * FROM usage_record LIMIT 1) AS one, generate_series(1, $1) AS n
"""


@dataclass
class Fleet:
    """One gateway before one worker."""

    system: WeirDev
    worker: RecordingWorker

    def families(self) -> list[Metric]:
        """As Prometheus scrapes them."""
        reply = self.system.request("GET", self.system.gateway() + "/metrics")
        return list(text_string_to_metric_families(reply.raw.decode()))

    def series(self) -> set[tuple[str, ...]]:
        """Each by its name and labels, but for what is absent while it is not known."""
        return {
            (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items())))
            for family in self.families()
            for sample in family.samples
            if family.name != "weir_pool_predicted_wait_seconds"
        }

    def ask_all_ways(self, name: str, secret: str) -> list[int]:
        """Served, both ways and of both classes; refused for its key, its model, its body."""
        post, body = self.system.post, self.system.body
        return [
            post(body(user=name), token=secret).status,
            post(body(stream=True), token=secret, headers={"x-weir-class": "batch"}).status,
            post(body(), token=f"sk-weir-not-{name}").status,
            post(body(model=f"model-of-{name}"), token=secret).status,
            post(body(max_tokens=0), token=secret).status,
        ]


EXPECTED = [200, 200, 401, 404, 400]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Of these tests alone: what it counts is of their own doing."""
    with (
        recording_worker() as worker,
        weir_dev(tmp_path_factory.mktemp("many"), "--engine", worker.url) as system,
    ):
        yield Fleet(system, worker)


async def _added(fleet: Fleet) -> None:
    """The tenants with a key each, their usage, and the gateway that knows them."""
    sql = fleet.system.sql
    await sql(MAKE_TENANTS, TENANTS)
    await sql(MAKE_KEYS, TENANTS)

    await _until(lambda: sql("SELECT FROM usage_record"))
    await sql(MAKE_USAGE, TENANTS)

    async def known() -> bool:
        reply = await asyncio.to_thread(
            fleet.system.post, fleet.system.body(), token=f"sk-weir-many-{TENANTS}"
        )
        return reply.status == 200

    await _until(known)


async def _until(holds: Callable[[], Awaitable[object]]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not await holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


@pytest.mark.timeout(300)
def test_ten_thousand_tenants_leave_the_number_of_series_unchanged(fleet: Fleet) -> None:
    """With keys and usage, in a real Postgres; hundreds of them ask, also for what is not there.
    Every label has a value of its closed set, or what is registered."""
    system = fleet.system
    for tenant in ("acme", "globex"):
        for request_class in ("interactive", "batch"):
            secret = system.key(tenant, request_class)
            assert fleet.ask_all_ways(tenant, secret) == EXPECTED
    before = fleet.series()
    asyncio.run(_added(fleet))

    def ask(index: int) -> None:
        for turn in range(index, ASKING, AT_ONCE):
            number = 1 + turn * (TENANTS // ASKING)
            statuses = fleet.ask_all_ways(f"many-{number}", f"sk-weir-many-{number}")
            assert statuses == EXPECTED

    together(AT_ONCE, ask)
    rows = asyncio.run(system.sql("SELECT count(DISTINCT tenant_id) AS n FROM usage_record"))
    assert rows[0]["n"] >= TENANTS
    after = fleet.series()
    assert after - before == set()
    assert before - after == set()
    hosted = system.admin("GET", "/admin/v1/hosted").json["items"]
    registered = {
        "model": {system.model},
        "worker": {each["id"] for each in system.ready["workers"]},
        "provider": {"self", *(f"hosted:{each['name']}" for each in hosted)},
    }
    assert strangers(fleet.families(), registered) == set()


def test_a_worker_that_is_removed_takes_its_series_with_it(fleet: Fleet) -> None:
    """From the next scrape on; what its model has counted stays, as the model does."""
    admin = fleet.system.admin

    def named() -> set[str]:
        return {part for each in fleet.series() for part in each if part.endswith("=goes")}

    model = {"id": "goes", "context_tokens": 1000, "max_output_tokens": 500}
    worker = {"id": "goes", "model": "goes", "url": fleet.worker.url}
    assert admin("POST", "/admin/v1/models", model).status == 201
    assert admin("POST", "/admin/v1/workers", worker).status == 201
    deadline = time.monotonic() + WITHIN_S
    body = fleet.system.body(model="goes")
    while fleet.system.post(body).status != 200 or named() != {"model=goes", "worker=goes"}:
        assert time.monotonic() < deadline, named()
        time.sleep(0.05)
    assert admin("DELETE", "/admin/v1/workers/goes").status == 204
    while named() != {"model=goes"}:
        assert time.monotonic() < deadline, named()
        time.sleep(0.05)
