"""Batch alone fills a replica further; interactive that comes back does not wait until it left."""

from dataclasses import replace

from virtual_gateway import Learning, VirtualGateways
from virtual_goodput import TARGETS, Load, requests

from backend.loadtest.measure import met_ttft
from backend.simulated.profiles import DEFAULT_PROFILE
from backend.simulated.scheduler_options import flags_of
from gateway.domain.queue.ceilings import EngineFacts
from gateway.domain.queue.learning import LatencyRule

ALONE = 170
BACK_MS, DURATION_S = 70_000.0, 95.0


def test_interactive_that_comes_back_to_batch_alone_does_not_wait_for_it_to_shrink() -> None:
    learning = Learning(LatencyRule(), EngineFacts(kv_tokens=DEFAULT_PROFILE.kv_tokens))
    # What was learned of batch alone; nothing more is until interactive comes.
    learning.learned[0] = replace(
        learning.learned[0], is_alone=True, alone=ALONE, since_ms=int(BACK_MS)
    )
    learning.rule = replace(learning.rule, alone_after_ms=0)
    gateways = VirtualGateways(
        DEFAULT_PROFILE,
        flags_of(DEFAULT_PROFILE, {"radix_eviction_policy": "slru"}),
        learning=learning,
    )
    seen = list[tuple[int, int]]()

    def note() -> None:
        room = gateways.pool.rooms["0"]
        seen.append((room.batch_max, room.running))

    for each in requests(Load(5.0, 8.0), replicas=1, duration_s=DURATION_S, seed=1, traces=None):
        comes_back = each.traffic_class == "interactive" and each.send_at_ms >= BACK_MS
        gateways.plan(each if comes_back else replace(each, traffic_class="batch"))
    gateways.fleet.at(BACK_MS - 1, note)
    gateways.fleet.at(BACK_MS - 1, lambda: _seldom_alone(learning))
    gateways.fleet.at(BACK_MS + 2_000, note)
    gateways.fleet.run(DURATION_S * 1000 + 10_000)

    (before, ran), (after, still_ran) = seen
    assert before == ALONE
    assert ran >= ALONE * 9 // 10
    assert after <= learning.learned[0].batch < ALONE
    assert still_ran > learning.learned[0].sequences, "the ceiling of all did not matter"
    back = [
        each for each in gateways.outcomes if each.planned.traffic_class == "interactive"
    ]  # fmt: skip
    assert len(back) > 80
    assert sum(met_ttft(each, TARGETS) for each in back) >= 0.95 * len(back)


def _seldom_alone(learning: Learning) -> None:
    """As in earnest: what was seen of interactive holds for a minute."""
    learning.rule = replace(learning.rule, alone_after_ms=LatencyRule().alone_after_ms)
