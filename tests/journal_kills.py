"""Processes that journal without end, killed, and what they had said by then."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

CHILD = Path(__file__).parent / "journal_process.py"


class Acknowledged:
    """What journal processes said had returned."""

    def __init__(self) -> None:
        self.admitted: set[UUID] = set()
        self.ended: set[UUID] = set()

    def read(self, process: subprocess.Popen[bytes], lines: int) -> None:
        """The next so many lines; 0 reads to the end of a process that was killed."""
        assert process.stdout is not None
        for number, line in enumerate(process.stdout, start=1):
            if line.endswith(b"\n"):
                word, request_id = line.decode().split()
                getattr(self, word).add(UUID(request_id))
            if number == lines:
                return


@contextmanager
def journaling(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that journals into `directory`, killed at the latest when the block ends."""
    command = [sys.executable, str(CHILD), str(directory), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
