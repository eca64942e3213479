"""What an operator configures of the straight line."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """What an operator configures of the straight line."""

    directory_stale_ms_max: int
    stores_unseen_ms_max: int
    keepalive_ms: int
    cache_salt_secret: str
    show_worker_header: bool
