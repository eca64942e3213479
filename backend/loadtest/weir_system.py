"""A running `weir dev`, as its `ready.json` says it."""

from pathlib import Path

import msgspec

READY_FILE = "ready.json"


class SystemNotFound(ValueError):
    """There is no `ready.json` that could be read."""


class WeirWorker(msgspec.Struct, frozen=True):
    """One worker behind the gateways."""

    id: str
    url: str
    engine: str


class AdminUser(msgspec.Struct, frozen=True):
    """A user of the admin API."""

    token: str


class WeirSystem(msgspec.Struct, frozen=True):
    """What a load test needs of it."""

    gateways: list[str]
    database_url: str
    workers: list[WeirWorker]
    users: dict[str, AdminUser]
    models: list[str]

    @property
    def admin_token(self) -> str:
        """The administrator's."""
        return self.users["admin"].token


def read_system(data_dir: Path) -> WeirSystem:
    """The system that runs on this data directory. Raises SystemNotFound."""
    path = data_dir / READY_FILE
    try:
        system = msgspec.json.decode(path.read_bytes(), type=WeirSystem)
    except FileNotFoundError as error:
        raise SystemNotFound(
            f"{path} is not there: name the --data-dir of a running weir dev, or a --url"
        ) from error
    except (OSError, msgspec.DecodeError) as error:
        raise SystemNotFound(f"{path} cannot be read: {error}") from error
    if "admin" not in system.users:
        raise SystemNotFound(
            f"{path} names no administrator (weir dev --no-seed): use --url and --api-key"
        )
    if not system.gateways or not system.models:
        raise SystemNotFound(f"{path} names no gateway or no model")
    return system
