"""What lies in a journal's directory, seen from outside: nothing is locked for long or changed."""

from pathlib import Path
from typing import NamedTuple

from gateway.adapters.journal.identity import IDENTITY_NAME, is_in_use, read_identity
from gateway.adapters.journal.numbering import gateway_of, last_seq
from gateway.adapters.journal.segment import list_segments


class Sight(NamedTuple):
    """A journal as its files show it."""

    directory: Path
    gateway_id: str | None
    """None where nothing legible says it."""
    in_use: bool
    """Whether a gateway has it now."""
    segments: int
    bytes: int
    """Disk space that it takes."""
    last_seqs: dict[int, int]
    """Each boot's last number."""

    def unshipped(self, shipped: dict[int, int]) -> int:
        """Records above each boot's watermark; of earlier boots, of which only later files are
        left, those are shipped."""
        return sum(max(0, seq - shipped.get(boot, 0)) for boot, seq in self.last_seqs.items())


def holds_journal(directory: Path) -> bool:
    """Whether a gateway ever journaled there. Raises OSError where that cannot be seen."""
    if not directory.is_dir():
        return False
    return (directory / IDENTITY_NAME).exists() or bool(list_segments(directory))


def journals_below(directory: Path) -> list[Path]:
    """`directory` itself, or the folders in it, that hold journals. Raises OSError."""
    if holds_journal(directory) or not directory.is_dir():
        return [directory] if directory.is_dir() else []
    return sorted(path for path in directory.iterdir() if holds_journal(path))


def look_at(directory: Path) -> Sight:
    """One journal, also one that is being written. Raises OSError."""
    segments = list_segments(directory)
    identity = read_identity(directory)
    gateway_id = None if identity is None else identity.gateway_id
    last = {key.boot: key for key in segments}
    if gateway_id is None and segments:
        gateway_id = gateway_of(segments[-1].path(directory))
    return Sight(
        directory=directory,
        gateway_id=gateway_id,
        in_use=is_in_use(directory),
        segments=len(segments),
        bytes=sum(key.path(directory).stat().st_blocks * 512 for key in segments),
        last_seqs={boot: last_seq(key.path(directory)) for boot, key in last.items()},
    )
