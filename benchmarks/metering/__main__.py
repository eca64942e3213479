"""What metering costs: the journal, shipping, catching up, and what a request waits.

`PYTHONPATH=.:tests python -m benchmarks.metering [--only journal,shipping,outage,request]
[--directory DIR] [--quick]` prints tables, each with its baseline in the same rounds. Rates depend
on what else the machine does, which is shown; CPU time much less.
"""

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks.admission import show
from benchmarks.metering import appends, outage, request, shipping
from benchmarks.metering.database import migrated

PARTS = ("journal", "shipping", "outage", "request")


def run(parts: list[str], folder: Path, *, quick: bool) -> None:
    """Measure and print."""
    if "journal" in parts:
        found = appends.measure(folder, seconds=0.1 if quick else 1.5, rounds=1 if quick else 3)
        show(_title("The journal"), appends.COLUMNS, [each.row() for each in found])
    if "request" in parts:
        served = request.measure(folder, seconds=0.2 if quick else 20.0)
        show(_title("A request"), request.COLUMNS, [each.row() for each in served])
    if not {"shipping", "outage"} & set(parts):
        return
    with migrated(folder / "database") as database:
        if "shipping" in parts:
            shipped = shipping.measure(
                database, folder, count=1_000 if quick else 40_000, rounds=1 if quick else 3
            )
            show(_title("Shipping"), shipping.COLUMNS, [each.row() for each in shipped])
        if "outage" in parts:
            caught_up = outage.measure(
                database, folder, away_s=0.5 if quick else 60.0, per_s=200 if quick else 2_000
            )
            show(_title("An outage"), outage.COLUMNS, [caught_up.row()])


def _title(what: str) -> str:
    return f"{what} (load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs)"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(PARTS), help="Parts of it.")
    parser.add_argument("--directory", type=Path, help="On the disk to be measured.")
    parser.add_argument("--quick", action="store_true", help="Seconds only: whether it runs.")
    asked = parser.parse_args()
    parts = asked.only.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"--only takes {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(dir=asked.directory) as folder:
        run(parts, Path(folder), quick=asked.quick)


if __name__ == "__main__":
    main()
