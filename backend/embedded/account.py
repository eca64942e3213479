"""Which user Postgres runs as: it refuses root, so under root it is given another."""

import os
import pwd
from pathlib import Path

from backend.embedded.data_dir import DataDirUnusable

CANDIDATES = ("postgres", "nobody", "daemon")


def postgres_account(data_folder: Path) -> tuple[int, int] | None:
    """User and group id for the server; None is the present user.

    Under root it is the owner of the data that is there already, else the first of `postgres`,
    `nobody` and `daemon` that exists. Raises DataDirUnusable where there is none, and where the
    data belong to a user that this process cannot become.
    """
    owner = data_folder.stat() if data_folder.exists() else None
    if os.geteuid() != 0:
        if owner is not None and owner.st_uid != os.geteuid():
            raise DataDirUnusable(
                f"{data_folder} belongs to user {owner.st_uid}: start as root, as before, "
                "or with another data directory"
            )
        if _entry(os.geteuid()) is None:
            raise DataDirUnusable(
                f"Postgres needs a name for user {os.geteuid()}, which has none on this system: "
                "set WEIR_DATABASE_URL to a server of your own"
            )
        return None
    if owner is not None and owner.st_uid != 0:
        return owner.st_uid, owner.st_gid
    for name in CANDIDATES:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        if found.pw_uid != 0:
            return found.pw_uid, found.pw_gid
    raise DataDirUnusable(
        "Postgres does not run as root and this system has no user "
        f"{', '.join(CANDIDATES)}: start as another user"
    )


def _entry(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None
