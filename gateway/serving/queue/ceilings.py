"""What each worker may hold, until more is learned of it."""

from gateway.domain.queue.ceilings import (
    KEPT_FREE,
    NO_CEILING,
    START,
    EngineFacts,
    memory_ceiling,
)
from gateway.domain.tenant import EngineKind
from gateway.domain.worker import WorkerView
from gateway.serving.queue.reporting import Ceiling


class StartingCeilings:
    """Implements `reporting.Ceilings`: memory as the engine says, latency where learning begins.

    An engine of which only OpenAI's HTTP is known may be a whole fleet behind one address, so it
    has no ceiling.
    """

    def of(self, view: WorkerView) -> Ceiling:
        """See `Ceilings`."""
        if view.worker.kind is EngineKind.OPENAI:
            return NO_CEILING, NO_CEILING, NO_CEILING
        facts = EngineFacts(kv_tokens=view.engine.pool_tokens or view.kv_total_tokens)
        return facts.bounded(KEPT_FREE * START), facts.bounded(START), memory_ceiling(facts)
