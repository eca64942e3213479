"""INV-10 through a simulated replica: while batch waits, as many run as its ceiling allows, but for
those that are on their way."""

from virtual_gateway import Learning, VirtualGateways
from virtual_goodput import Load, requests

from backend.simulated.profiles import DEFAULT_PROFILE
from backend.simulated.scheduler_options import flags_of
from gateway.domain.queue.ceilings import EngineFacts
from gateway.domain.queue.learning import LatencyRule
from gateway.domain.queue.tickets import Band, PlaceState

PROBED_MS = 50.0
ON_THEIR_WAY_MAX = 12
"""Granted, or in a front end, at once: a front end takes 30 ms, and some 8 come in a second. More
come when the ceiling jumps, once in ten seconds."""


def test_with_waiters_the_replica_runs_as_many_as_its_ceiling_less_what_is_on_its_way() -> None:
    profile, duration_s = DEFAULT_PROFILE, 150.0
    learning = Learning(LatencyRule(), EngineFacts(kv_tokens=profile.kv_tokens), gateways=3)
    gateways = VirtualGateways(
        profile,
        flags_of(profile, {"radix_eviction_policy": "slru"}),
        gateways=3,
        learning=learning,
    )
    short, on_their_way, ceilings = [], [], set()

    def probe() -> None:
        gateways.fleet.at(gateways.fleet.now_ms + PROBED_MS, probe)
        if not len(gateways.pool.lines[Band.BATCH]):
            return
        granted = sum(place.state is PlaceState.GRANTED for place in gateways.pool.places.values())
        load = gateways.fleet.replicas[0].load()
        inside = load.running + load.waiting
        ceiling = gateways.pool.rooms["0"].batch_max
        coming = granted + gateways.fleet.in_flight[0] - inside
        short.append(ceiling - inside - coming)
        on_their_way.append(coming)
        ceilings.add(ceiling)

    for each in requests(Load(4.0, 5.0), replicas=1, duration_s=duration_s, seed=3, traces=None):
        gateways.plan(each)
    gateways.fleet.at(0.0, probe)
    gateways.fleet.run(duration_s * 1000)
    assert len(short) > 1_000
    assert len(ceilings) > 3
    assert max(short) <= 0
    assert max(on_their_way) <= ON_THEIR_WAY_MAX
