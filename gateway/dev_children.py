"""The gateways of `weir dev`, and what its Python children have in common."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import click

from backend.embedded import DataDir, Launch, port_is_free
from backend.supervisor import Rank, Service

PROBE_TIMEOUT_S = 2.0
PORT_MAX = 65_535
SHUTDOWN_GRACE_MS = 5_000
"""On a laptop nobody waits half a minute for Ctrl-C; WEIR_SHUTDOWN_GRACE_MS overrides it."""
STOP_MARGIN_S = 5.0


def gateway_ports(first: int, count: int) -> list[int]:
    """`first` and the next free ports after it. Raises ClickException where `first` is in use."""
    if not port_is_free(first):
        raise click.ClickException(f"port {first} is in use: choose another with --port")
    ports = [first]
    candidate = first
    while len(ports) < count:
        candidate += 1
        if candidate > PORT_MAX:
            raise click.ClickException(f"not enough free ports above {first} for the gateways")
        if port_is_free(candidate):
            ports.append(candidate)
    return ports


def gateway_service(
    number: int, port: int, data_dir: DataDir, *, database_url: str, redis_url: str, salt: str
) -> Service:
    """One gateway of this machine, configured as a production one is: by its environment."""
    name = f"gateway-{number}"
    grace_ms = os.environ.get("WEIR_SHUTDOWN_GRACE_MS", str(SHUTDOWN_GRACE_MS))

    def launch() -> Launch:
        environment = inherited_environment(with_settings=True) | {
            "WEIR_DATABASE_URL": database_url,
            "WEIR_REDIS_URL": redis_url,
            "WEIR_JOURNAL_DIR": str(data_dir.folder("journal") / name),
            "WEIR_LISTEN": f"127.0.0.1:{port}",
            "WEIR_CACHE_SALT_SECRET": salt,
            "WEIR_SHUTDOWN_GRACE_MS": grace_ms,
        }
        return Launch(
            (sys.executable, "-m", "gateway", "serve"),
            data_dir.log_path(name),
            environment=environment,
            keep_fds=(data_dir.servers_fd,),
        )

    seconds = int(grace_ms) / 1000 if grace_ms.isdigit() else 0.0
    return Service(
        name,
        Rank.GATEWAY,
        launch,
        answers(port, "/readyz"),
        stop_timeout_s=seconds + STOP_MARGIN_S,
    )


def answers(port: int, path: str) -> Callable[[], Awaitable[bool]]:
    """A probe: whether GET of `path` at that local port answers 200."""

    async def probe() -> bool:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                return await _status(port, path) == b"200"
        except (OSError, TimeoutError):
            return False

    return probe


def inherited_environment(*, with_settings: bool = False) -> dict[str, str]:
    """The launcher's environment; without Weir's own settings where a child has no use for them."""
    return {
        name: value
        for name, value in os.environ.items()
        if with_settings or not name.startswith("WEIR_")
    }


def shown(path: Path) -> Path:
    """`path` as it is shortest to read: relative, where it lies below the present folder."""
    here = Path.cwd()
    return path.relative_to(here) if here != Path("/") and path.is_relative_to(here) else path


async def _status(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        request = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n"
        writer.write(request.encode())
        line = await reader.readline()
        return line.split(b" ", 2)[1] if line.startswith(b"HTTP/1.") else b""
    finally:
        writer.close()
