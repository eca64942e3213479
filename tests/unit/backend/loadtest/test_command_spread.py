"""Requests over several gateways: each address in its turn, whichever connection is there."""

import asyncio
from collections import Counter

from backend.loadtest.http_connection import Connection, address_of
from backend.loadtest.spread import SpreadConnections


async def opened(connections: SpreadConnections) -> Connection:
    """As a request has it: an idle one, or a new one."""
    found = connections.idle()
    return await connections.open() if found is None else found


async def test_each_address_has_its_turn() -> None:
    """Also where connections open one over the other."""
    reached: Counter[int] = Counter()

    def server(number: int) -> asyncio.Protocol:
        class Counting(asyncio.Protocol):
            def connection_made(self, _: asyncio.BaseTransport) -> None:
                reached[number] += 1

        return Counting()

    loop = asyncio.get_running_loop()
    first = await loop.create_server(lambda: server(1), "127.0.0.1", 0)
    second = await loop.create_server(lambda: server(2), "127.0.0.1", 0)
    async with first, second:
        ports = [each.sockets[0].getsockname()[1] for each in (first, second)]
        spread = SpreadConnections([address_of(f"http://127.0.0.1:{port}") for port in ports])
        made = await asyncio.gather(*(opened(spread) for _ in range(10)))
        deadline = loop.time() + 5
        while reached.total() < 10:
            assert loop.time() < deadline
            await asyncio.sleep(0.001)
        assert reached == {1: 5, 2: 5}
        for connection in made:
            connection.abandon()
        spread.close()
