"""Connections to several gateways of one Weir, each request to the next."""

from collections import deque
from collections.abc import Sequence

from backend.loadtest.http_connection import Address, Connection, Connections


class SpreadConnections(Connections):
    """Takes turns over several addresses; each keeps its own idle connections.

    All have one path, and requests name the first one's authority, which a gateway does not read.
    """

    def __init__(self, addresses: Sequence[Address]) -> None:
        super().__init__(addresses[0])
        self._pools = [Connections(address) for address in addresses]
        self._turn = 0
        self._awaited: deque[Connections] = deque()

    def idle(self) -> Connection | None:
        """One of the address whose turn it is."""
        pool = self._next()
        found = pool.idle()
        if found is None:
            # `open` is what comes of it, some time later: the turn is this request's.
            self._awaited.append(pool)
        return found

    async def open(self) -> Connection:
        """To the address whose turn it was when nothing idle was found. Raises OSError."""
        pool = self._awaited.popleft() if self._awaited else self._next()
        return await pool.open()

    def close(self) -> None:
        """Close what is idle."""
        for pool in self._pools:
            pool.close()

    def _next(self) -> Connections:
        pool = self._pools[self._turn % len(self._pools)]
        self._turn += 1
        return pool
