"""The metric of a provider's circuit is what the circuit is when somebody reads it."""

from memory_ports import MemoryDirectory, StandingClock
from prometheus_client import REGISTRY

from gateway.serving.hosted import HostedFallback
from gateway.telemetry.going import forget_gone

HOSTED = "hosted:shown"


def test_an_open_circuit_is_shown_half_open_once_its_time_is_over() -> None:
    """Nobody asks it meanwhile; who was never asked is closed."""
    clock = StandingClock()
    fallback = HostedFallback(MemoryDirectory(), clock)

    def shown() -> float | None:
        fallback.show(HOSTED)
        return REGISTRY.get_sample_value("weir_hosted_circuit", {"provider": HOSTED})

    assert shown() == 0
    circuit = fallback.circuits[HOSTED]
    for _ in range(5):
        leave = circuit.begin(fallback.now_ms())
        assert leave is not None
        circuit.failed(leave, fallback.now_ms())
    assert shown() == 2
    clock.advance(60_000)
    assert shown() == 1
    forget_gone({"model": [], "provider": [], "worker": []})
