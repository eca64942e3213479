"""A relay in front of Postgres that can be stopped, to see what a lost database does."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

SOCKET = ".s.PGSQL.5432"


class PostgresProxy:
    """Passes bytes both ways until it is told to `freeze` (connections stay, nothing passes) or to
    `refuse` (connections break and new ones fail)."""

    def __init__(self, database_url: str, folder: Path) -> None:
        parts = urlsplit(database_url)
        self._target = str(Path(parse_qs(parts.query)["host"][0]) / SOCKET)
        self._path = folder / SOCKET
        self.url = f"postgresql://postgres@{parts.path}?host={folder}"
        self._passing = asyncio.Event()
        self._passing.set()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._relays: set[asyncio.Task[None]] = set()
        self.freeze_at: bytes | None = None
        """What freezes the proxy when a client sends it; it is not passed on."""

    async def start(self) -> None:
        """Listen, and pass again."""
        self._passing.set()
        if self._server is None:
            self._server = await asyncio.start_unix_server(self._connected, str(self._path))

    def freeze(self) -> None:
        """Pass nothing more."""
        self._passing.clear()

    async def refuse(self) -> None:
        """Break every connection and take no new one."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._path.unlink(missing_ok=True)
        for writer in list(self._connections):
            writer.transport.abort()
        for relay in list(self._relays):
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_unix_connection(self._target)
        except OSError:  # it is down
            writer.transport.abort()
            return
        self._connections |= {writer, upstream_writer}
        for source, sink, sent in (
            (reader, upstream_writer, True),
            (upstream_reader, writer, False),
        ):
            relay = asyncio.create_task(self._relay(source, sink, sent_by_client=sent))
            self._relays.add(relay)
            relay.add_done_callback(self._relays.discard)

    async def _relay(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, sent_by_client: bool
    ) -> None:
        try:
            while data := await source.read(65536):
                if sent_by_client and self.freeze_at is not None and self.freeze_at in data:
                    self.freeze()
                await self._passing.wait()
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.transport.abort()
            self._connections.discard(sink)


@asynccontextmanager
async def postgres_proxy(database_url: str) -> AsyncIterator[PostgresProxy]:
    """A proxy in front of `database_url`, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="weir-proxy-") as folder:
        proxy = PostgresProxy(database_url, Path(folder))
        await proxy.start()
        try:
            yield proxy
        finally:
            await proxy.refuse()
