"""A launcher of both embedded stores that a test can kill: `embedded_launcher.py FOLDER`.

It needs the standard library only, so that any Python can run it. It prints one line of JSON once
both serve, and stops them when its standard input ends.
"""

import json
import sys
import time
from pathlib import Path

from backend.embedded import (
    DataDir,
    DataDirInUse,
    DataDirUnusable,
    EmbeddedPostgres,
    EmbeddedValkey,
    running,
)


def serve(folder: Path) -> None:
    """Run both stores until standard input ends."""
    since = time.monotonic()
    data_dir = DataDir.open(folder)
    valkey, postgres = EmbeddedValkey(data_dir), EmbeddedPostgres(data_dir)
    with running(valkey) as valkey_process, running(postgres) as postgres_process:
        report = {
            "valkey_pid": valkey_process.pid,
            "postgres_pid": postgres_process.pid,
            "redis_url": valkey.url,
            "database_url": postgres.url,
            "start_ms": 1000 * (time.monotonic() - since),
        }
        print(json.dumps(report), flush=True)  # noqa: T201 - to the test
        sys.stdin.read()
    postgres.remove_socket_folder()
    data_dir.close()


if __name__ == "__main__":
    try:
        serve(Path(sys.argv[1]))
    except (DataDirInUse, DataDirUnusable) as refused:
        sys.exit(str(refused))
