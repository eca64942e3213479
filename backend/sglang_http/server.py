"""Runs engines behind HTTP until they are told to stop."""

import asyncio
import contextlib
import logging
import resource
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from backend.sglang_http.app import create_app
from backend.sglang_http.connection import EXTENSION, Connection
from backend.sglang_http.engine import Engine, EngineUnavailable

logger = logging.getLogger(__name__)
CONNECTION_BACKLOG = 4096
DRAIN_POLL_S = 0.02


class PortUnavailable(OSError):
    """The address cannot be listened on."""


class WorkerProtocol(HttpToolsProtocol):
    """Shows each request's connection to the application, as an ASGI extension."""

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {EXTENSION: Connection(self.transport, self.flow)}  # type: ignore[dict-item] # our own extension


class WorkerServer(uvicorn.Server):
    """uvicorn whose signals are handled by `serve`, for all servers of the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Nothing."""
        yield


@dataclass(slots=True)
class Worker:
    """An engine, the socket that it answers on, and what to call when it serves."""

    engine: Engine
    bound: socket.socket
    announce: Callable[[], None]


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


async def serve(workers: Sequence[Worker], *, grace_ms: int) -> None:
    """Answer at once on every socket, 503 on /ready until its engine is up, then announce it.

    After SIGTERM or SIGINT /health is 503, requests are taken all the same, as SGLang does, and
    this returns once nothing runs any more or `grace_ms` has passed; a second signal does not wait.
    Raises EngineUnavailable where an engine does not come up.
    """
    _raise_file_limit()
    logging.getLogger("uvicorn.error").addFilter(_tells_news)
    loop = asyncio.get_running_loop()
    asked, hurry = asyncio.Event(), asyncio.Event()

    def ask() -> None:
        (hurry if asked.is_set() else asked).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask)
    try:
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(_serve_one(worker, grace_ms, asked, hurry))
    except* (EngineUnavailable, SystemExit) as failures:
        raise _first(failures) from None
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def run(workers: Sequence[Worker], *, grace_ms: int) -> None:
    """`serve` in an event loop of its own."""
    uvloop.run(serve(workers, grace_ms=grace_ms))


async def _serve_one(
    worker: Worker, grace_ms: int, asked: asyncio.Event, hurry: asyncio.Event
) -> None:
    engine = worker.engine
    server = WorkerServer(_config(engine))
    serving = asyncio.create_task(server.serve(sockets=[worker.bound]))
    starting = asyncio.create_task(engine.start())
    ending = asyncio.create_task(asked.wait())
    try:
        await asyncio.wait({serving, starting, ending}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            worker.announce()
        await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
        engine.draining = True
        await _drain(engine, grace_ms, hurry)
    finally:
        starting.cancel()
        ending.cancel()
        await asyncio.gather(starting, ending, return_exceptions=True)
        # First, so that what still runs ends as aborted, and is not cut.
        await engine.stop()
        server.force_exit = hurry.is_set()
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)


async def _drain(engine: Engine, grace_ms: int, hurry: asyncio.Event) -> None:
    """Return once nothing runs any more, `grace_ms` has passed, or nobody wants to wait."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(grace_ms / 1000):
            while engine.live_requests and not hurry.is_set():  # noqa: ASYNC110 # once in a life
                await asyncio.sleep(DRAIN_POLL_S)


def _config(engine: Engine) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(engine),
        http=WorkerProtocol,
        ws="none",
        # Nothing here has one, and a hurried end would leave it waiting.
        lifespan="off",
        access_log=False,
        log_level="warning",
        backlog=CONNECTION_BACKLOG,
        # The grace time has passed by then: only what is on its way is waited for.
        timeout_graceful_shutdown=1,
        timeout_keep_alive=75,
    )


def _tells_news(record: logging.LogRecord) -> bool:
    """Not that an answer was cut off by the end of the process, which was asked for."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    while isinstance(group.exceptions[0], BaseExceptionGroup):
        group = group.exceptions[0]
    return group.exceptions[0]


def _raise_file_limit() -> None:
    """Thousands of streams need as many sockets."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
