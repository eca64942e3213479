"""The picture of a sweep: goodput and its knee, latency against its targets, gaps, workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from backend.loadtest.knee import ATTAINMENT_MIN
from backend.loadtest.plots import (
    BLUE,
    DASHES,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SERIES,
    distribution_line,
    drawing,
    four_panels,
    log_axis,
    share_axis,
    target_line,
    thousands,
)
from backend.loadtest.run import WorkerSample
from backend.loadtest.run_table import heading, targets_text
from backend.loadtest.summary import Summary
from backend.loadtest.sweep import Sweep, SweepPoint, rates_text
from backend.loadtest.workers_plot import workers_over_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GAP_CURVES_MAX = 5


def sweep_figure(
    sweep: Sweep,
    samples: Sequence[WorkerSample] = (),
    sampled: str = "",
    output_goal_tokens_per_s: float | None = None,
) -> Figure:
    """Draw it. `samples` are of one of its runs, which `sampled` names. A goal of output tokens per
    second is marked where there is one.

    Raises:
        PlotsUnavailable: matplotlib is not installed.
    """
    first = sweep.points[0].summaries[0]
    load = first.load
    with drawing():
        figure, panels = four_panels(
            heading(first.target),
            f"{load.workload}, sha256 {load.workload_sha256[:12]}, {rates_text(sweep)}; "
            f"targets: {targets_text(first.all.goodput.targets)}",
            first.target.simulated,
        )
        _goodput(panels[0], sweep, output_goal_tokens_per_s)
        _latency(panels[1], sweep)
        _gaps(panels[2], sweep)
        workers_over_time(panels[3], samples, sampled)
    return figure


def _goodput(panel: Axes, sweep: Sweep, output_goal: float | None) -> None:
    points, knee = sweep.points, sweep.knee
    offered = _means(points, lambda s: s.load.offered_rps)
    panel.set_title("Goodput, throughput and the knee")
    served = (
        (_means(points, lambda s: s.load.achieved_rps), BLUE, "o", "achieved (rps)"),
        (_means(points, lambda s: s.all.goodput.goodput_rps), GREEN, "s", "goodput (rps)"),
    )
    for values, color, marker, label in served:
        panel.plot(offered, values, color=color, marker=marker, markersize=4, label=label)
    most = max(offered)
    panel.plot([0, most], [0, most], color=GREY, linestyle=":", linewidth=1, label="offered")
    panel.plot(
        [0, most],
        [0, most * ATTAINMENT_MIN],
        color=GREY,
        linestyle="-.",
        linewidth=0.8,
        label=f"{ATTAINMENT_MIN * 100:g} % of offered",
    )
    panel.set_xlim(0, most * 1.05)
    panel.set_ylim(0, most * 1.12)
    panel.set_xlabel("offered load (requests per second)")
    panel.set_ylabel("requests per second")
    right = panel.twinx()
    right.spines["right"].set_visible(True)
    right.grid(visible=False)
    thousands(right.yaxis)
    right.plot(
        offered,
        _means(points, lambda s: s.tokens.output_tokens_per_s),
        color=ORANGE,
        linestyle="--",
        marker="^",
        markersize=4,
        label=_output_label(points),
    )
    if output_goal is not None:
        right.axhline(
            output_goal,
            color=ORANGE,
            linestyle=(0, (5, 3)),
            linewidth=1,
            label=f"goal {output_goal:,g} tokens/s (right)",
        )
    right.set_ylim(0, right.get_ylim()[1] * 1.08)
    right.set_ylabel("output tokens per second")
    if knee.knee_rps is not None:
        _mark_knee(panel, knee.knee_rps, at_least=knee.failed_rps is None)
    lines = [*panel.get_lines()[:4], *right.get_lines()]
    right.legend(lines, [str(line.get_label()) for line in lines], loc="upper left")


def _output_label(points: Sequence[SweepPoint]) -> str:
    events = any(each.tokens.counted_by_events for point in points for each in point.summaries)
    return f"output ({'events, for tokens' if events else 'tokens'}/s, right)"


def _mark_knee(panel: Axes, rate: float, *, at_least: bool) -> None:
    panel.axvline(rate, color=RED, linewidth=1.4)
    panel.annotate(
        f"knee {'≥ ' if at_least else ''}{rate:g} rps",
        (rate, 0.03),
        xycoords=("data", "axes fraction"),
        xytext=(-5, 0),
        textcoords="offset points",
        ha="right",
        color=RED,
        fontweight="bold",
        bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none"},
    )


def _latency(panel: Axes, sweep: Sweep) -> None:
    points = sweep.points
    targets = points[0].summaries[0].all.goodput.targets
    offered = _means(points, lambda s: s.load.offered_rps)
    panel.set_title("TTFT and TPOT at p95")
    panel.plot(
        offered,
        _means(points, lambda s: s.all.ttft.p95_ms if s.all.ttft else None),
        color=BLUE,
        marker="o",
        markersize=4,
        label="TTFT p95 (ms)",
    )
    panel.plot(
        offered,
        _means(points, lambda s: s.all.tpot.p95_ms if s.all.tpot else None),
        color=RED,
        marker="s",
        markersize=4,
        linestyle="--",
        label="TPOT p95 (ms)",
    )
    log_axis(panel, "y")
    panel.set_xlim(0, max(offered) * 1.05)
    panel.set_xlabel("offered load (requests per second)")
    panel.set_ylabel("milliseconds (log scale)")
    target_line(panel, targets.ttft_ms, f"TTFT target {targets.ttft_ms:g} ms", BLUE)
    target_line(panel, targets.tpot_ms, f"TPOT target {targets.tpot_ms:g} ms", RED)
    if sweep.knee.knee_rps is not None:
        panel.axvline(sweep.knee.knee_rps, color=GREY, linewidth=1, label="knee")
    panel.legend(loc="best")


def _gaps(panel: Axes, sweep: Sweep) -> None:
    panel.set_title("Gaps between tokens (ITL), cumulative")
    drawn = [point for point in _spaced(sweep) if point.summaries[0].itl_distribution_ms]
    for at, point in enumerate(drawn):
        distribution_line(
            panel,
            point.summaries[0].itl_distribution_ms,
            f"{point.rate_rps:g} rps",
            SERIES[at % len(SERIES)],
            DASHES[at % len(DASHES)],
        )
    share_axis(panel, "share of gaps not longer (%)")
    panel.set_xlabel("milliseconds (log scale)")
    if drawn:
        log_axis(panel, "x")
        panel.legend(loc="lower right")


def _spaced(sweep: Sweep) -> list[SweepPoint]:
    """The knee's own curve and some on both sides: more would be a tangle."""
    points = sweep.points
    count = min(GAP_CURVES_MAX, len(points))
    chosen = {round(at * (len(points) - 1) / max(1, count - 1)) for at in range(count)}
    chosen |= {at for at, each in enumerate(points) if each.rate_rps == sweep.knee.knee_rps}
    return [points[at] for at in sorted(chosen)]


def _means(points: Sequence[SweepPoint], figure: Callable[[Summary], float | None]) -> list[float]:
    """NaN where no run has the figure: a gap in the line."""
    means = (point.mean(figure) for point in points)
    return [float("nan") if value is None else value for value in means]
