"""Write the dashboards' JSON files from their panels.

python deploy/grafana/make.py [FOLDER]
"""

import json
import sys
from pathlib import Path

from panel import Dashboard
from panels_capacity import CAPACITY
from panels_faults import FAULTS
from panels_latency import LATENCY
from panels_money import MONEY
from panels_queue import QUEUE

FOLDER = Path(__file__).parent / "dashboards"
DASHBOARDS: tuple[Dashboard, ...] = (CAPACITY, LATENCY, QUEUE, MONEY, FAULTS)


def text_of(dashboard: Dashboard) -> str:
    """A dashboard's file."""
    return json.dumps(dashboard.document(), indent=2) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for each in DASHBOARDS:
        (folder / each.file_name).write_text(text_of(each))
