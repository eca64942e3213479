"""Limits hold exactly over two gateways (issue line 3)."""

from collections import Counter
from itertools import pairwise

from weir_dev import WeirDev, together


def test_one_sequence_is_one_sequence(simulated: WeirDev) -> None:
    """INV-2, C05: fifty at once over two gateways, and the worker never sees two."""
    simulated.set_limits(max_sequences=1)
    before = simulated.worker("/weir/ledger")["next"]
    replies = together(50, lambda i: simulated.chat(f"Story {i}", max_tokens=30, gateway=i))
    counts = Counter(reply.status for reply in replies)
    assert set(counts) == {200, 429}
    seen = simulated.worker(f"/weir/ledger?since={before}")["entries"]
    assert len(seen) == counts[200]
    spans = sorted((entry["started_at_ms"], entry["ended_at_ms"]) for entry in seen)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    for refused in (reply for reply in replies if reply.status == 429):
        assert refused.error["type"] == "sequences"
        assert refused.error["code"] == "rate_limit_exceeded"
        assert "tenant is 1 sequences" in refused.error["message"]
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.headers["x-ratelimit-limit-sequences"] == "1"
    assert simulated.leases() == 0


def test_choices_count_as_sequences(simulated: WeirDev) -> None:
    """C10: limit 4: n=4 runs, n=5 can never run and says so."""
    simulated.set_limits(max_sequences=4)
    assert len(simulated.chat(n=4).json["choices"]) == 4
    refused = simulated.chat(n=5)
    assert refused.status == 400
    assert "needs 5 sequences" in refused.error["message"]
    assert simulated.leases() == 0


def test_a_client_in_sequence_never_meets_its_own_last_request(simulated: WeirDev) -> None:
    """With one sequence allowed, the next request after an answer is always admitted."""
    simulated.set_limits(max_sequences=1)
    for index in range(20):
        reply = simulated.chat(gateway=index, stream=bool(index % 2), max_tokens=2)
        assert reply.status == 200, reply.raw


def test_headers_tell_what_is_left(simulated: WeirDev) -> None:
    """R18: what remains decreases by what was charged; a refusal says when it will fit."""
    simulated.set_limits(tpm=400)
    left = []
    for _ in range(3):
        reply = simulated.chat(max_tokens=40)
        assert reply.status == 200
        left.append(int(reply.headers["x-ratelimit-remaining-tokens"]))
    assert left[0] > left[1] > left[2]
    assert reply.headers["x-ratelimit-limit-tokens"] == "400"
    while (refused := simulated.chat(max_tokens=40)).status == 200:
        pass
    assert refused.status == 429
    assert 50_000 < int(refused.headers["retry-after-ms"]) <= 60_000


def test_a_need_above_the_limit_itself_is_no_endless_429(simulated: WeirDev) -> None:
    """R23: it is a 400 that names limit and need."""
    simulated.set_limits(tpm=100)
    refused = simulated.chat(max_tokens=400)
    assert refused.status == 400
    assert "limit of the tenant is 100" in refused.error["message"]


def test_without_a_maximum_a_small_limit_admits_one(simulated: WeirDev) -> None:
    """R02, L02: no max_tokens, TPM 200: the expectation is cut to the limit, not refused."""
    simulated.set_limits(tpm=200)
    body = simulated.body()
    del body["max_tokens"]
    assert simulated.post(body).status == 200
