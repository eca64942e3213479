"""One request that was read: who asks, for what, and where it may go."""

from dataclasses import dataclass

from gateway.domain.tenant import Model
from gateway.serving.arrival import Arrival
from gateway.serving.authenticate import Caller
from gateway.serving.hosted import HostedRoute
from gateway.serving.spending import Spending
from gateway.wire.request import CompletionRequest


@dataclass(frozen=True)
class Asking:
    """What every step after reading works on."""

    arrival: Arrival
    caller: Caller
    request: CompletionRequest
    model: Model
    pool: str
    """Whose workers serve it (`pools.pool_of`), as they were reserved when it came."""
    route: HostedRoute
    waited_ms: int = 0
    """For a worker to be there at all."""

    @property
    def spending(self) -> Spending:
        """Its money."""
        return self.route.spending
