"""What an earlier test left in a folder must not pass for what the next one found."""

import re
from pathlib import Path

from backend.loadtest.report import PAGE, PLOT, REQUESTS, SUMMARY

_SEED = re.compile(r"seed-\d+")


def remove_report(folder: Path) -> None:
    """Remove the files with a report's names, here and in the folders of seeds, and those folders
    where nothing else is in them. What somebody else put there stays.

    Raises:
        OSError: something cannot be removed.
    """
    if not folder.exists():
        return
    seeds = [inner for inner in folder.iterdir() if _SEED.fullmatch(inner.name)]
    for each in [folder, *(inner for inner in seeds if inner.is_dir() and not inner.is_symlink())]:
        for name in (SUMMARY, REQUESTS, PLOT, PAGE):
            (each / name).unlink(missing_ok=True)
        if each != folder and not any(each.iterdir()):
            each.rmdir()
