"""The other side of the canary: with the same dead fleet a tenant that allows it is answered."""

from collections.abc import Callable

import pytest
from canary import USAGE
from fallback_system import Fallback, a_worker_of
from weir_dev import Reply

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

ANSWERED: dict[str, Callable[[Fallback], Reply]] = {
    "whole": lambda seen: seen.ask(),
    "stream": lambda seen: seen.ask(stream=True),
    "key unset": lambda seen: seen.ask(gateway=1),
}


@pytest.mark.parametrize("form", ANSWERED)
async def test_a_tenant_that_allows_it_gets_its_answer(fallback: Fallback, form: str) -> None:
    """The same dead fleet; its row and its attempts say where it was served, and at what cost."""
    fallback.use_dead()
    seen = fallback.seen_by_a("hosted_allowed")
    reply = ANSWERED[form](seen)
    assert reply.status == 200, reply.raw
    assert "From afar." in (reply.text or reply.json["choices"][0]["message"]["content"])
    row = await seen.system.record(reply.headers["x-request-id"])
    assert (row["provider"], row["worker_id"], row["outcome"]) == (
        "hosted:canary", "hosted:canary", "completed",
    )  # fmt: skip
    assert (row["prompt_tokens"], row["output_tokens"]) == (
        USAGE["prompt_tokens"], USAGE["completion_tokens"],
    )  # fmt: skip
    (attempt,) = await seen.system.sql(
        "SELECT * FROM usage_attempts WHERE request_id = $1", row["request_id"]
    )
    assert attempt["provider"] == "hosted:canary"
    assert attempt["provider_request_id"] == "afar-1"
    assert attempt["provider_cost_pico"] == 11 * 400_000 + 3 * 1_600_000
    assert fallback.canary.bodies[-1]["model"] == "afar-1"
    assert b"provider-key" in fallback.canary.received
    assert seen.system.key().encode() not in fallback.canary.received


def test_live_shows_the_provider(fallback: Fallback) -> None:
    """With what this gateway lets through to it."""
    (shown,) = fallback.system.admin("GET", "/admin/v1/live").json["hosted"]
    known = {
        "name": "canary", "enabled": True, "models": [fallback.system.model], "circuit": "closed",
        "running": 0,
    }  # fmt: skip
    assert shown == {**known, "in_use_since": shown["in_use_since"], "latency": shown["latency"]}


async def test_it_gets_its_answer_as_the_worker_dies(fallback: Fallback) -> None:
    """Connecting fails before the first byte: two attempts, one billed request, one lease."""
    seen = fallback.seen_by_a("hosted_allowed")
    with a_worker_of(fallback) as worker:
        worker.process.kill()
        worker.process.wait()
        reply = seen.ask()
    assert reply.status == 200, reply.raw
    row = await seen.system.record(reply.headers["x-request-id"])
    assert row["attempts"] in (1, 2)
    assert row["provider"] == "hosted:canary"
    assert seen.system.leases() == 0
