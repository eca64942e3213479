"""Changes of keys and limits are in force on every gateway within a second (issue line 5)."""

import time

from weir_dev import WeirDev

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
    reply = simulated.admin(
        "PUT", f"/admin/v1/tenants/{simulated.tenant}/limits", {"tpm": used + 10}, gateway=0
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
