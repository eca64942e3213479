"""What gateways share of a worker, and the word for each decision."""

from dataclasses import replace

import pytest

from gateway.domain.queue.ceilings import EngineFacts
from gateway.domain.queue.learned import Record, direction
from gateway.domain.queue.learning import LatencyRule
from gateway.domain.queue.samples import Samples

RULE = LatencyRule()
FACTS = EngineFacts(kv_tokens=640_000)
START = RULE.begin(FACTS, now_ms=0, batch=80)
LATER_MS = START.since_ms + RULE.decide_ms
MET = Samples(1, counted=100, looks=10, batch_ran=10, interactive_ms=LATER_MS)
WAITED_FOR = replace(MET, batch_bound=10)


@pytest.mark.parametrize(
    ("samples", "word"),
    [
        (replace(WAITED_FOR, over=60), "cut"),
        (WAITED_FOR, "grown"),
        (MET, "kept"),
        (replace(MET, interactive_ms=0), "alone"),
    ],
)
def test_a_decision_has_a_word(samples: Samples, word: str) -> None:
    now_ms = LATER_MS if samples.interactive_ms else RULE.alone_after_ms
    after = RULE.decide(START, samples, FACTS, now_ms=now_ms)
    assert after is not None
    assert direction(START, after) == word
    if word == "alone":
        assert direction(after, START) == "beside"


def test_the_later_epoch_counts_and_of_one_the_first() -> None:
    """Also where what is remembered was lost, and a gateway knows more than the store."""
    kept = Record(START, replace(MET, interactive_ms=5))
    same = Record(replace(START, batch=7), Samples(1, counted=2, interactive_ms=9))
    assert kept.met(same) == Record(START, replace(MET, counted=102, interactive_ms=9))
    later = Record(replace(START, epoch=3, batch=7), Samples(3, counted=2))
    assert kept.met(later) == Record(later.learned, Samples(3, counted=2, interactive_ms=5))
    assert later.met(kept) == Record(later.learned, Samples(3, counted=2, interactive_ms=5))
