"""Who takes alerts over HTTP, for tests: a real server that answers as it is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


class AlertReceiver:
    """Keeps what came, headers and body, and answers with `statuses` one after another, then 204.
    A status of 0 drops the connection after the request was read. What comes while there is a
    `hold` is answered when that is set."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.came = asyncio.Event()
        self.hold: asyncio.Event | None = None
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        """One POST."""
        assert request.method == "POST"
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.taken.append((headers, await request.read()))
        self.came.set()
        if self.hold is not None:
            await self.hold.wait()
        status = self.statuses.pop(0) if self.statuses else 204
        if status == 0:
            assert request.transport is not None
            request.transport.close()
        return web.Response(status=status or 200, headers={"location": "/elsewhere"})


@asynccontextmanager
async def alert_receiver(*statuses: int) -> AsyncIterator[AlertReceiver]:
    """One that listens."""
    receiver = AlertReceiver(*statuses)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    receiver.url = f"http://{host}:{port}/hook/t0ken"
    yield receiver
    await runner.cleanup()
