"""Runs an engine behind HTTP until it is told to stop."""

import asyncio
import contextlib
import logging
import resource
import signal
import socket
from collections.abc import Callable, Generator

import uvicorn
import uvloop

from backend.sglang_http.app import create_app
from backend.sglang_http.engine import Engine

logger = logging.getLogger(__name__)
CONNECTION_BACKLOG = 4096


class PortUnavailable(OSError):
    """The address cannot be listened on."""


class WorkerServer(uvicorn.Server):
    """uvicorn, but SIGTERM and SIGINT only ask it to finish: exit status 0 after the grace time."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install handlers that begin the graceful stop; a second signal forces it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask_to_exit)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _ask_to_exit(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 picks a free one. Raises PortUnavailable."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        raise PortUnavailable(f"cannot listen on {host}:{port}: {error}") from None
    return bound


async def serve(
    engine: Engine,
    bound: socket.socket,
    *,
    grace_ms: int,
    announce: Callable[[], None],
) -> None:
    """Answer on `bound` at once, 503 on /ready until the engine is up, then call `announce`.

    Returns after SIGTERM or SIGINT, once running answers have ended or `grace_ms` has passed.
    Raises EngineUnavailable where the engine does not come up.
    """
    _raise_file_limit()
    config = uvicorn.Config(
        create_app(engine),
        http="httptools",
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        backlog=CONNECTION_BACKLOG,
        timeout_graceful_shutdown=max(1, grace_ms // 1000),
        timeout_keep_alive=75,
    )
    server = WorkerServer(config)
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    starting = asyncio.create_task(engine.start())
    try:
        await asyncio.wait({serving, starting}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            announce()
        await serving
    finally:
        server.should_exit = True
        starting.cancel()
        await asyncio.gather(serving, starting, return_exceptions=True)
        await engine.stop()


def run(
    engine: Engine, bound: socket.socket, *, grace_ms: int, announce: Callable[[], None]
) -> None:
    """`serve` in an event loop of its own."""
    uvloop.run(serve(engine, bound, grace_ms=grace_ms, announce=announce))


def _raise_file_limit() -> None:
    """Thousands of streams need as many sockets."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
