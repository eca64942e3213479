"""Workers as routing sees them."""

from dataclasses import dataclass

from gateway.domain.engine_facts import NOTHING_KNOWN, EngineFacts
from gateway.domain.tenant import Worker

SIMULATED_ENGINE = "simulated"


@dataclass(frozen=True)
class WorkerView:
    """One worker at this instant. Token counts are None where the engine does not report them."""

    worker: Worker
    healthy: bool
    in_flight: int
    """Streams that this gateway has open on it."""
    running: int | None = None
    waiting: int | None = None
    kv_used_tokens: int | None = None
    kv_total_tokens: int | None = None
    load_age_ms: int | None = None
    """Since the engine last reported its load."""
    engine: EngineFacts = NOTHING_KNOWN
    """What the engine says of itself."""

    @property
    def simulated(self) -> bool:
        """Whether its figures are a simulator's: as it was registered, or as it says."""
        return self.worker.engine == SIMULATED_ENGINE or self.engine.simulated is True
