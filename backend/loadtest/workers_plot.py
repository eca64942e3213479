"""Each worker over time: KV in use and what waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backend.loadtest.fleet import kv_share
from backend.loadtest.plots import DASHES, SERIES, share_axis, thousands
from backend.loadtest.run import WorkerSample

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORKERS_MAX = 6


def workers_over_time(panel: Axes, samples: Sequence[WorkerSample], named: str = "") -> None:
    """KV in use above, queued prompt tokens below, in the panel's place; a colour a worker."""
    title = "Workers over time" + (f" ({named})" if named else "")
    by_worker: dict[str, list[WorkerSample]] = {}
    for sample in samples:
        by_worker.setdefault(sample.worker, []).append(sample)
    place = panel.get_subplotspec()
    if not by_worker or place is None:
        panel.set_title(title)
        panel.set_axis_off()
        panel.text(0.5, 0.3, "no samples", transform=panel.transAxes, ha="center")
        return
    figure = panel.figure
    panel.remove()
    halves = place.subgridspec(2, 1, hspace=0.12)
    upper, lower = figure.add_subplot(halves[0]), figure.add_subplot(halves[1])
    upper.set_title(title)
    share_axis(upper, "KV in use (%)")
    # Room for the legend: a full pool is where it would lie.
    upper.set_ylim(0, 1.4)
    upper.tick_params(labelbottom=False)
    lower.set_ylabel("queued tokens")
    lower.set_xlabel("seconds since the start of the run")
    thousands(lower.yaxis)
    for at, worker in enumerate(sorted(by_worker)[:WORKERS_MAX]):
        found = by_worker[worker]
        seconds = [sample.at_ms / 1000 for sample in found]
        color, dash = SERIES[at % len(SERIES)], DASHES[at % len(DASHES)]
        upper.plot(
            seconds,
            [kv_share(sample) for sample in found],
            color=color,
            linestyle=dash,
            label=worker,
        )
        lower.plot(
            seconds, [sample.waiting_tokens for sample in found], color=color, linestyle=dash
        )
    lower.set_ylim(0, max(*(sample.waiting_tokens for sample in samples), 10) * 1.05)
    left_out = len(by_worker) - WORKERS_MAX
    words = f"and {left_out} more" if left_out > 0 else None
    upper.legend(loc="upper right", ncols=3, title=words)
