"""Changes of keys and limits are in force on every gateway within a second (issue line 5)."""

import re
import time
import urllib.request

import msgspec
from weir_dev import WeirDev

from gateway.http.openapi_live import LiveAnswer
from gateway.http.openapi_v1 import LimitsAnswer

WITHIN_S = 1.0


def until(status: int, simulated: WeirDev, secret: str) -> float:
    """Seconds until every gateway answers a chat of this key with the status."""
    began = time.monotonic()
    for index in range(len(simulated.ready["gateways"])):
        while simulated.chat(gateway=index, token=secret, max_tokens=1).status != status:
            assert time.monotonic() < began + 3 * WITHIN_S, f"gateway {index} never gave {status}"
    return time.monotonic() - began


def test_a_key_is_made_rotated_and_revoked(simulated: WeirDev) -> None:
    """B07, B09: a new key works everywhere, both do in the grace of a rotation, a revoked one
    nowhere."""
    made = simulated.admin(
        "POST", f"/admin/v1/tenants/{simulated.tenant}/keys", {"name": "ci", "class": "batch"}
    )
    assert made.status == 201
    key = made.json
    assert key["secret"].startswith("sk-weir-")
    until(200, simulated, key["secret"])
    listed = simulated.admin("GET", f"/admin/v1/tenants/{simulated.tenant}/keys")
    assert key["secret"].encode() not in listed.raw
    rotated = simulated.admin("POST", f"/admin/v1/keys/{key['id']}/rotate", {"grace_ms": 3_600_000})
    assert rotated.status in (200, 201), rotated.raw
    until(200, simulated, rotated.json["secret"])
    assert simulated.chat(token=key["secret"], max_tokens=1).status == 200
    simulated.admin("DELETE", f"/admin/v1/keys/{key['id']}")
    until(401, simulated, key["secret"])
    assert simulated.chat(token=rotated.json["secret"], max_tokens=1).status == 200
    simulated.admin("DELETE", f"/admin/v1/keys/{rotated.json['id']}")
    until(401, simulated, rotated.json["secret"])


def test_limits_change_on_every_gateway(simulated: WeirDev) -> None:
    """Limits written through one gateway hold on the other; the window's use is kept."""
    simulated.chat(max_tokens=50)
    used = simulated.limits()["tenant"]["tokens_last_minute"]
    assert used > 0
    began = time.monotonic()
    limits = {"tpm": used + 10, "max_queued": 0}
    reply = simulated.admin(
        "PUT", f"/admin/v1/tenants/{simulated.tenant}/limits", limits, gateway=0
    )
    assert reply.status == 200
    while simulated.chat(max_tokens=50, gateway=1).status == 200:
        assert time.monotonic() < began + 3 * WITHIN_S
    assert simulated.chat(max_tokens=50, gateway=1).error["type"] in (
        "tokens",
        "invalid_request_error",
    )


def test_every_change_is_in_the_audit_log(simulated: WeirDev) -> None:
    """Who, what, before and after; never a secret."""
    simulated.set_limits(max_sequences=7)
    entries = simulated.admin("GET", "/admin/v1/audit?limit=20").json["items"]
    entry = next(
        e for e in entries if "limits" in e["action"] and e["subject_id"] == simulated.tenant
    )
    assert entry["actor"]
    assert entry["after"]["max_sequences"] == 7


def test_live_shows_who_runs_what(simulated: WeirDev) -> None:
    """`/admin/v1/live` counts over all gateways, and names workers with their KV cache."""
    with simulated.open_chat(max_tokens=3000, stream=True, n=2) as connection:
        connection.recv(1024)
        live = simulated.admin("GET", "/admin/v1/live", gateway=1).json
    mine = next(tenant for tenant in live["tenants"] if tenant["id"] == simulated.tenant)
    assert mine["sequences_running"] == 2
    assert live["workers"][0]["healthy"]
    assert live["workers"][0]["kv_total_tokens"] > 0
    assert live["degraded"] == []
    assert live["pools"][0]["queued_tokens"] == {"interactive": 0, "batch": 0}


def test_what_has_a_place_is_shown_alike_everywhere(simulated: WeirDev) -> None:
    """In the account of pools and workers, in the tenant's limits and in metrics, from the gateway
    that serves it and from the other; in the shapes of the document."""
    with simulated.open_chat(max_tokens=3000, stream=True, n=2) as connection:
        head = connection.recv(1024).decode().lower()
        assert re.search(r"^x-weir-queue-ms: \d+\r$", head, re.MULTILINE)
        for gateway in (0, 1):
            live = simulated.admin("GET", "/admin/v1/live", gateway=gateway).json
            assert msgspec.convert(live, LiveAnswer)
            (pool,) = (each for each in live["pools"] if each["model"] == simulated.model)
            assert pool["sequences_running"] == 2
            assert pool["queue"]["batch"]["requests"] == 0
            workers = [each for each in live["workers"] if each["model"] == simulated.model]
            assert sum(each["places"]["sequences"] for each in workers) == 2
            assert all(each["places"]["batch_max"] > 0 for each in workers)
            limits = simulated.limits(gateway=gateway)
            assert msgspec.convert(limits, LimitsAnswer)
            assert limits["queue"]["queued"] == limits["tenant"]["sequences_queued"] == 0
            assert limits["queue"]["models"][simulated.model]["interactive"] == {
                "queued": 0,
                "tokens_ahead": None,
                "next": {"own_ahead": 0, "tokens_ahead": 0, "wait_ms": 0},
            }
            with urllib.request.urlopen(simulated.gateway(gateway) + "/metrics") as reply:  # noqa: S310
                metrics = reply.read().decode()
            of_model = re.escape(f'{{model="{simulated.model}",')
            places = re.findall(
                rf"^weir_place_sequences{of_model}.*}} (\S+)$", metrics, re.MULTILINE
            )
            assert sum(map(float, places)) == 2
            waits = rf'^weir_pool_waiting_requests{of_model}request_class="batch"}} 0.0$'
            assert re.search(waits, metrics, re.MULTILINE)
