"""Live sequences: one end each, in the ledger."""

from dataclasses import replace

import pytest

from backend.sglang_http.engine import GenerationRequest, Prompt, Sampling
from backend.sglang_http.generation import FinishReason, Usage
from backend.sglang_http.ledger import Ledger
from backend.sglang_http.live import LiveSequences
from backend.sglang_http.refusals import Refused, engine_broke, queue_full


def request(rid: str) -> GenerationRequest:
    """A request of three prompt tokens."""
    return GenerationRequest(rid, Prompt("a b c", (1, 2, 3)), Sampling(8), stream=True)


def test_prefix_match() -> None:
    """An abort matches by prefix, all on demand, and none with an empty rid."""
    live = LiveSequences(Ledger())
    for rid in ("p1", "p10", "x1"):
        live.add(request(rid))

    def matched(rid: str, *, abort_all: bool = False) -> list[str]:
        return [each.request.rid for each in live.matching(rid, abort_all=abort_all)]

    assert matched("p1") == ["p1", "p10"]
    assert matched("p10") == ["p10"]
    assert matched("") == []
    assert matched("", abort_all=True) == ["p1", "p10", "x1"]


def test_duplicates() -> None:
    """A rid is taken while it is alive and free afterwards."""
    live = LiveSequences(Ledger())
    first = live.add(request("r"))
    with pytest.raises(Refused, match="Duplicate request ID detected: r"):
        live.add(request("r"))
    live.end(first, FinishReason.ABORT)
    live.add(request("r"))


def test_usage_at_the_end() -> None:
    """Nothing is counted that never started; then what was generated, or what the engine says."""
    ledger = Ledger()
    live = LiveSequences(ledger)
    queued, running, reported = (live.add(request(rid)) for rid in ("q", "r", "s"))
    live.end(queued, FinishReason.ABORT)
    for sequence in (running, reported):
        live.start(sequence)
        sequence.generation.push("text", 2)
    live.end(running, FinishReason.ABORT)
    live.end(running, FinishReason.STOP)
    live.end(reported, FinishReason.STOP, usage=Usage(3, 4, 1))
    entries = ledger.page(0).entries
    assert [(e.rid, e.prompt_tokens, e.completion_tokens, e.cached_tokens) for e in entries] == [
        ("q", 0, 0, 0),
        ("r", 3, 2, None),
        ("s", 3, 4, 1),
    ]
    assert [entry.running_at_start for entry in entries] == [None, 1, 2]
    assert [entry.finish_reason for entry in entries] == ["abort", "abort", "stop"]


def test_what_an_entry_tells() -> None:
    """Its course, its priority, and whether the worker asked itself, which no total counts: a
    client that calls its own request so does not slip through."""
    ledger = Ledger()
    live = LiveSequences(ledger)
    for rid, asked_itself in (("HEALTH_CHECK_1", True), ("HEALTH_CHECK_2", False)):
        sequence = live.add(replace(request(rid), priority=7, health=asked_itself))
        live.start(sequence, at_ns=3_000_000)
        sequence.generation.course.retractions = 2
        sequence.generation.push("text", 1)
        live.end(sequence, FinishReason.STOP)
    health, other = ledger.page(0).entries
    assert (health.health, other.health) == (True, False)
    assert (other.priority, other.retractions, other.started_at_ms) == (7, 2, 3)
    assert other.first_token_ms is not None
    assert other.queued_at_ms <= other.first_token_ms <= other.ended_at_ms
    assert (ledger.totals.requests, ledger.totals.completion_tokens) == (1, 1)


def test_failures() -> None:
    """A broken sequence is in the ledger as an error, a rejected one not at all."""
    ledger = Ledger()
    live = LiveSequences(ledger)
    broken, rejected = live.add(request("b")), live.add(request("r"))
    live.start(broken)
    live.fail(broken, engine_broke())
    live.reject(rejected, queue_full())
    assert [(e.rid, e.finish_reason) for e in ledger.page(0).entries] == [("b", "error")]
    assert list(live) == []
