"""The billing policy on a whole system, down to the rows that finance reads (DESIGN 7)."""

import time
from collections.abc import Callable

import pytest
import servers
from weir_dev import Json, WeirDev

JUDGED = """
SELECT r.outcome, r.billable, r.prompt_tokens, r.output_tokens, r.cost_pico, r.list_cost_pico,
    CASE WHEN r.output_tokens > 0 THEN p.with_output ELSE p.without_output END AS pays
FROM usage_records r JOIN billing_policy p ON p.version = r.billing_policy AND p.outcome = r.outcome
WHERE r.request_id = $1::uuid
"""
ATTEMPTS = """
SELECT prompt_tokens, output_tokens, cached_prompt_tokens, usage_source FROM usage_attempt
WHERE request_id = $1::uuid
"""


def served(system: WeirDev, stream: bool) -> None:
    """To its end."""
    assert system.chat(max_tokens=5, stream=stream).status == 200


def unfinished(system: WeirDev, stream: bool) -> None:
    """After three tokens the worker ends the stream and says nothing more."""
    system.worker("/weir/faults", {"kind": "die_midstream", "after_tokens": 3})
    assert system.chat(max_tokens=50, stream=stream).status == (200 if stream else 502)


def left_in_the_middle(system: WeirDev, stream: bool) -> None:
    """Three tokens came and no more, and the client goes."""
    _leave(system, 3, stream)


def left_in_the_prefill(system: WeirDev, stream: bool) -> None:
    """None came, and the client goes."""
    _leave(system, 0, stream)


def _leave(system: WeirDev, tokens: int, stream: bool) -> None:
    system.worker("/weir/faults", {"kind": "stall", "after_tokens": tokens})
    with system.open_chat(max_tokens=50, stream=stream):
        deadline = time.monotonic() + 10
        while not system.running():
            assert time.monotonic() < deadline, "it did not start"
        time.sleep(0.2)  # nothing tells how far an engine is whose client hears nothing yet
    while system.running():
        assert time.monotonic() < deadline, "the engine ran on"


async def entries_since(system: WeirDev, before: int) -> list[Json]:
    """What the worker's ledger has of requests since then, once it has any."""
    found: list[Json] = []

    def seen() -> bool:
        entries = system.worker(f"/weir/ledger?since={before}")["entries"]
        found[:] = [each for each in entries if not each["health"]]
        return bool(found)

    await servers.eventually(seen, within_s=10, what="an entry of the request")
    return found


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        (served, ("completed", 5, True)),
        (unfinished, ("worker_failed", 3, False)),
        (left_in_the_middle, ("client_cancelled", 3, True)),
        (left_in_the_prefill, ("client_cancelled", 0, False)),
    ],
)
async def test_a_row_is_judged_by_the_table_beside_it(
    simulated: WeirDev,
    happens: Callable[[WeirDev, bool], None],
    expected: tuple[str, int, bool],
    stream: bool,
) -> None:
    """D01, D03, D04, D08: what Postgres says is paid for is what is paid for; counts are the
    engine's own, or less where it could not say them, and its attempt says which."""
    outcome, output, pays = expected
    before = simulated.worker("/weir/ledger")["next"]
    happens(simulated, stream)
    (entry,) = await entries_since(simulated, before)
    await simulated.record(entry["rid"][:32])
    (row,) = await simulated.sql(JUDGED, entry["rid"][:32])
    assert (row["outcome"], row["billable"], row["pays"]) == (outcome, pays, pays)
    assert row["output_tokens"] == output
    assert row["cost_pico"] == (row["list_cost_pico"] if pays else 0)
    assert row["list_cost_pico"] > 0
    (attempt,) = await simulated.sql(ATTEMPTS, entry["rid"][:32])
    assert (attempt["prompt_tokens"], attempt["output_tokens"]) == (row["prompt_tokens"], output)
    engines = (entry["prompt_tokens"], entry["completion_tokens"], entry["cached_tokens"])
    if attempt["usage_source"] == "engine_final":
        assert tuple(attempt)[:3] == engines
    else:
        assert outcome == "worker_failed"
        assert output <= entry["completion_tokens"]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_refusal_is_a_row_of_nothing(simulated: WeirDev, stream: bool) -> None:
    """Refused by a full engine after it was admitted here: one row, no token, nothing to pay."""
    simulated.worker("/weir/faults", {"kind": "queue_full"})
    reply = simulated.chat(max_tokens=5, stream=stream)
    assert reply.status == 503, reply.raw
    request_id = reply.headers["x-request-id"]
    await simulated.record(request_id)
    (row,) = await simulated.sql(JUDGED, request_id)
    assert tuple(row) == ("refused", False, 0, 0, 0, 0, False)
    (attempt,) = await simulated.sql(ATTEMPTS, request_id)
    assert tuple(attempt) == (0, 0, None, "engine_final")
