"""What was used, shown to who used it and to finance, and whether anything may be missing."""

import time
from itertools import pairwise
from typing import Any

import msgspec
from weir_dev import Reply, WeirDev

from gateway.http.openapi_usage import OwnUsageAnswer, UsageReportAnswer

WITHIN_S = 5.0


def asked(system: WeirDev, query: str, *, gateway: int = 0) -> Reply:
    """`/v1/usage` with the tenant's key."""
    url = system.gateway(gateway) + "/v1/usage" + query
    return system.request("GET", url, token=system.key())


def own(system: WeirDev, query: str = "", *, gateway: int = 0) -> Any:
    """`/v1/usage` as the tenant sees it."""
    reply = asked(system, query, gateway=gateway)
    assert reply.status == 200, reply.raw
    msgspec.convert(reply.json, OwnUsageAnswer)
    return reply.json


def own_until(system: WeirDev, requests: int, *, gateway: int) -> Any:
    """The same, once so many have been shipped and the answer is complete."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        answer = own(system, "?group_by=model", gateway=gateway)
        if answer["complete"] and sum(each["requests"] for each in answer["data"]) == requests:
            return answer
        assert time.monotonic() < deadline, answer


def test_a_tenant_sees_its_own_on_every_gateway(simulated: WeirDev) -> None:
    """Both gateways say the same of what went through either, and to another tenant nothing."""
    for gateway in (0, 1):
        assert simulated.chat(gateway=gateway, max_tokens=4).status == 200
    seen = [own_until(simulated, 2, gateway=gateway) for gateway in (0, 1)]
    assert seen[0]["data"] == seen[1]["data"]
    (model,) = seen[0]["data"]
    assert (model["group"], model["output_tokens"]) == (simulated.model, 8)
    assert model["billable_requests"] == 2
    assert seen[0]["provisional_requests"] == 0
    assert own(simulated.with_new_tenant())["data"] == []


def test_finance_sees_the_same(simulated: WeirDev) -> None:
    """By tenant; who is no user sees nothing."""
    assert simulated.chat(max_tokens=4).status == 200
    own_until(simulated, 1, gateway=0)
    path = f"/billing/v1/usage?tenant_id={simulated.tenant}"
    reply = simulated.admin("GET", path)
    msgspec.convert(reply.json, UsageReportAnswer)
    (of_tenant,) = reply.json["items"]
    assert (of_tenant["group"], of_tenant["requests"]) == (simulated.tenant, 1)
    assert simulated.request("GET", simulated.gateway() + path, token="none").status == 401


def test_what_was_asked_wrongly_is_said(simulated: WeirDev) -> None:
    """400 in OpenAI's shape, 422 as a problem; never all of it instead."""
    reply = asked(simulated, "?form=2026-11-01T00:00:00Z")
    assert (reply.status, reply.json["error"]["param"]) == (400, "form")
    reply = simulated.admin("GET", "/billing/v1/usage?until=now")
    assert (reply.status, reply.json["param"]) == (422, "until")


async def test_one_gateway_at_a_time_reads_a_workers_counters(simulated: WeirDev) -> None:
    """Two gateways, one worker: some four seconds lie between two readings, never less, and what
    they say only grows."""
    deadline = time.monotonic() + 40
    found: list[Any] = []
    while len(found) < 4:
        found = await simulated.sql("SELECT * FROM engine_sample ORDER BY turn")
        assert time.monotonic() < deadline, f"{len(found)} samples"
    gaps = [
        (later["asked_at"] - earlier["asked_at"]).total_seconds()
        for earlier, later in pairwise(found)
    ]
    assert min(gaps) >= 4.0
    assert {each["life"] for each in found} == {1}
    for name in ("prompt_tokens", "output_tokens", "requests"):
        counts = [each[name] for each in found]
        assert counts == sorted(counts)
        assert None not in counts
