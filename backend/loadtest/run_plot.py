"""The picture of one run: how its latencies are distributed, how it went, and its workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from backend.loadtest.measure import finished, good, tpot_ms, ttft_ms
from backend.loadtest.percentiles import distribution
from backend.loadtest.plots import (
    BLUE,
    GREEN,
    GREY,
    LIGHT,
    ORANGE,
    RED,
    distribution_line,
    drawing,
    four_panels,
    log_axis,
    share_axis,
    target_mark,
)
from backend.loadtest.run import Outcome, Run
from backend.loadtest.run_table import heading, targets_text
from backend.loadtest.steady import judged, sent_within, steady_window
from backend.loadtest.summary import Summary
from backend.loadtest.table import percent
from backend.loadtest.workers_plot import workers_over_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLASSES = (("interactive", BLUE, "-"), ("batch", ORANGE, "--"))
SLICES = 40


def run_figure(run: Run, summary: Summary) -> Figure:
    """Draw it.

    Raises:
        PlotsUnavailable: matplotlib is not installed.
    """
    load, goodput = summary.load, summary.all.goodput
    targets = goodput.targets
    sent = sent_within(run, steady_window(run, load.warmup_ms))
    whole = [outcome for outcome in sent if finished(outcome)]
    with drawing():
        figure, panels = four_panels(
            heading(summary.target),
            f"{load.workload}, {load.arrivals}; {load.offered_rps:,.2f} rps offered; goodput "
            f"{goodput.goodput_rps:,.2f} rps, attainment {percent(goodput.attainment_share)} %; "
            f"targets: {targets_text(targets)}",
            summary.target.simulated,
        )
        panels[0].set_title("Time to first token (TTFT), cumulative")
        _by_class(panels[0], whole, ttft_ms)
        target_mark(panels[0], targets.ttft_ms, f"target {targets.ttft_ms:g} ms", RED)
        panels[1].set_title("Time per output token (TPOT), cumulative")
        _by_class(panels[1], whole, tpot_ms)
        target_mark(panels[1], targets.tpot_ms, f"target {targets.tpot_ms:g} ms", RED)
        _timeline(panels[2], run, summary)
        workers_over_time(panels[3], run.samples)
    return figure


def _by_class(
    panel: Axes, whole: list[Outcome], measure: Callable[[Outcome], float | None]
) -> None:
    share_axis(panel, "share of answers not slower (%)")
    panel.set_xlabel("milliseconds (log scale)")
    log_axis(panel, "x")
    drawn = False
    for name, color, dash in CLASSES:
        values = [measure(o) for o in whole if o.planned.traffic_class == name]
        ordered = sorted(value for value in values if value is not None and value > 0)
        if ordered:
            distribution_line(panel, distribution(ordered), name, color, dash)
            drawn = True
    if drawn:
        panel.legend(loc="lower right")


def _timeline(panel: Axes, run: Run, summary: Summary) -> None:
    """Sent, ended and good in equal slices of the schedule, by when they were to be sent."""
    width_ms = run.workload.duration_ms / SLICES
    sent, whole, met = [0] * SLICES, [0] * SLICES, [0] * SLICES
    for outcome in judged(run):
        at = min(SLICES - 1, int(outcome.planned.send_at_ms / width_ms))
        sent[at] += 1
        whole[at] += finished(outcome)
        met[at] += good(outcome, summary.all.goodput.targets)
    seconds = [(at + 0.5) * width_ms / 1000 for at in range(SLICES)]
    panel.set_title("What became of the requests, by when they were sent")
    # All that was sent lies wide beneath the rest, to be seen where the three are one.
    for counts, label, color, dash, width in (
        (sent, "sent", LIGHT, "-", 5),
        (whole, "ended whole", BLUE, "-", 1.6),
        (met, "met every target", GREEN, "--", 1.6),
    ):
        rates = [count / (width_ms / 1000) for count in counts]
        panel.plot(seconds, rates, label=label, color=color, linestyle=dash, linewidth=width)
    if summary.load.warmup_ms:
        panel.axvspan(0, summary.load.warmup_ms / 1000, color=GREY, alpha=0.12, label="warm-up")
    panel.set_ylim(bottom=0)
    panel.set_xlabel("seconds since the start of the run")
    panel.set_ylabel("requests per second")
    panel.legend(loc="lower right")
