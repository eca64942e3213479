"""What all gateways tell each other of latencies and hosted use, in memory; and a live view over a
gateway in memory."""

from collections.abc import Mapping, Sequence

from memory_gateway import MemoryGateway

from gateway.domain.latency import Slice, Targets, added
from gateway.domain.tenant import RequestClass
from gateway.serving.condition import Watch
from gateway.serving.hosted_use import HostedUse, Use
from gateway.serving.latencies import Latencies
from gateway.serving.live_view import LiveView
from gateway.serving.ports import LedgerUnavailable
from gateway.serving.queue_looks import PoolLooks

TARGETS = {
    RequestClass.INTERACTIVE: Targets(ttft_ms=800, tpot_ms=40),
    RequestClass.BATCH: Targets(ttft_ms=60_000, tpot_ms=60),
}


class MemoryBoard:
    """Where gateways tell what they measured and use; `away` as a store is that is away."""

    def __init__(self) -> None:
        self.away = False
        self.looks = 0
        self.slices: dict[tuple[int, str], Slice] = {}
        self.uses: dict[str, tuple[int, Mapping[str, Use]]] = {}

    def check(self) -> None:
        """Raise where it is away."""
        if self.away:
            raise LedgerUnavailable(OSError)

    def slices_of(self, gateway: str) -> "MemorySlices":
        """One gateway's side of the latencies."""
        return MemorySlices(self, gateway)

    def uses_of(self, gateway: str) -> "MemoryUses":
        """And of the hosted use."""
        return MemoryUses(self, gateway)


class MemorySlices:
    """Implements `gateway.serving.latencies.Slices`."""

    def __init__(self, board: MemoryBoard, gateway: str) -> None:
        self._board = board
        self._gateway = gateway

    async def tell(self, number: int, measured: Slice) -> None:
        """See `Slices`."""
        self._board.check()
        copied = {series: dict(histogram) for series, histogram in measured.items()}
        self._board.slices[number, self._gateway] = copied

    async def told(self, numbers: Sequence[int]) -> Mapping[int, Slice]:
        """See `Slices`."""
        self._board.check()
        self._board.looks += 1
        whole: dict[int, Slice] = {}
        for (number, _), measured in self._board.slices.items():
            if number in numbers:
                known = whole.setdefault(number, {})
                for series, histogram in measured.items():
                    known[series] = added([known.get(series, {}), histogram])
        return whole


class MemoryUses:
    """Implements `gateway.serving.hosted_use.Uses`."""

    def __init__(self, board: MemoryBoard, gateway: str) -> None:
        self._board = board
        self._gateway = gateway

    async def tell(self, uses: Mapping[str, Use], at_ms: int) -> None:
        """See `Uses`."""
        self._board.check()
        self._board.uses[self._gateway] = (at_ms, dict(uses))

    async def told(self, since_ms: int) -> Sequence[Mapping[str, Use]]:
        """See `Uses`."""
        self._board.check()
        return [uses for at_ms, uses in self._board.uses.values() if at_ms > since_ms]


def live_view_of(gateway: MemoryGateway, board: MemoryBoard) -> LiveView:
    """The view of a gateway that is otherwise at rest."""
    watch = Watch(
        directory=gateway.directory,
        leases=gateway.leases,
        journal=gateway.journal,
        fleet=gateway.fleet,
        metering_lag_s=lambda: 0.0,
        copies_late=lambda: False,
        directory_stale_ms_max=60_000,
        stores_unseen_ms_max=60_000,
    )
    return LiveView(
        directory=gateway.directory,
        ledger=gateway.ledger,
        fleet=gateway.fleet,
        watch=watch,
        fallback=gateway.hosted,
        clock=gateway.clock,
        looks=PoolLooks(
            gateway.queues.gateway("other"),
            gateway.clock,
            is_open=lambda: gateway.leases.watch.is_open,
        ),
        latencies=Latencies(board.slices_of("this"), gateway.clock),
        hosted_use=HostedUse(board.uses_of("this"), gateway.clock),
        targets=TARGETS,
    )
