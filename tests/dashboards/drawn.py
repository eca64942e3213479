"""A picture of a dashboard, drawn from what a real Prometheus answers to its queries.

It is not Grafana's drawing: places, titles, units and series are the dashboard's, the look is ours.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from dashboards.prometheus_server import Series
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from PIL import Image

COLUMNS = 24
UNIT_IN = 0.62
ROW_IN = 0.40
HEAD_IN = 1.0
LEGENDS_MAX = 8
STEP_S = 1.0
INK, FAINT, GRID = "#22252b", "#6b7280", "#e5e7eb"
GOOD, BAD = "#2c7a4b", "#c0392b"
NOTE = (
    "Drawn by Weir's tests from the answers of a real Prometheus; not Grafana's own drawing.\n"
    "A scripted run of a minute and a half over simulated workers: no figure is a real engine's."
)
COLOURS = (
    *("#1f6fb2", "#d9822b", "#2c7a4b", "#8e44ad", "#c0392b", "#0e8a8a", "#7f6a00", "#5b6770"),
    *("#e377a2", "#3d3d9e", "#86a23a", "#a0522d", "#00a0c6", "#b03060"),
)
Json = dict[str, Any]


@dataclass(frozen=True)
class Answered:
    """A panel with what its queries were answered: a legend and its series, query by query."""

    panel: Json
    series: list[tuple[str, Series]]


def shown(value: float, unit: str) -> str:
    """A value as a person reads it."""
    if unit == "percentunit":
        return f"{value * 100:.4g} %"
    if unit == "s":
        return f"{value * 1000:.3g} ms" if 0 < abs(value) < 1 else f"{value:.3g} s"
    if unit == "bytes":
        return f"{value / 1024**2:.3g} MiB"
    if abs(value) >= 1_000:
        return f"{value / 1000:.3g} k"
    return f"{value:.3g}"


def draw(document: Json, answered: Sequence[Answered], path: Path, *, began_s: float) -> None:
    """Write the picture of a dashboard as a PNG file; seconds are counted from `began_s`."""
    rows = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in document["panels"])
    width, height = COLUMNS * UNIT_IN, rows * ROW_IN + HEAD_IN
    figure = Figure(figsize=(width, height), dpi=80, facecolor="white")
    FigureCanvasAgg(figure)
    figure.text(0.012, 1 - 0.30 / height, document["title"], size=17, weight="bold", color=INK)
    figure.text(0.012, 1 - 0.60 / height, document["description"], size=10, color=FAINT)
    figure.text(0.988, 1 - 0.62 / height, NOTE, size=9, color=BAD, ha="right")
    for each in answered:
        place = each.panel["gridPos"]
        is_series = each.panel["type"] == "timeseries"
        left = (place["x"] * UNIT_IN + (0.75 if is_series else 0.3)) / width
        wide = (place["w"] * UNIT_IN - (0.95 if is_series else 0.5)) / width
        legend_in = 0.62 if is_series else 0.12
        bottom = 1 - (HEAD_IN + (place["y"] + place["h"]) * ROW_IN - legend_in - 0.12) / height
        tall = (place["h"] * ROW_IN - legend_in - 0.52) / height
        axes = figure.add_axes((left, bottom, wide, tall))
        title_at = (
            left - (0.5 / width if is_series else 0.1 / width),
            bottom + tall + 0.1 / height,
        )
        figure.text(*title_at, each.panel["title"], size=10, weight="bold", color=INK)
        {"timeseries": _lines, "stat": _stat, "bargauge": _bars}[each.panel["type"]](
            axes, each, began_s
        )
    drawing = BytesIO()
    figure.savefig(drawing, metadata={"Software": None})
    # Of few colours, so that it is small.
    Image.open(drawing).convert("RGB").quantize(128).save(path, optimize=True)


def _lines(axes: Axes, answered: Answered, began_s: float) -> None:
    defaults = answered.panel["fieldConfig"]["defaults"]
    stacked = defaults["custom"]["stacking"]["mode"] == "normal"
    base: dict[float, float] = {}
    top = 0.0
    found = answered.series
    if len(found) > LEGENDS_MAX:
        # What is named in the legend is what stands out.
        found = sorted(found, key=lambda each: -max((v for _, v in each[1].points), default=0.0))
    for index, (legend, series) in enumerate(found):
        colour = COLOURS[index % len(COLOURS)]
        label = legend if index < LEGENDS_MAX else None
        points = _with_gaps(series.points)
        seconds = [at - began_s for at, _ in points]
        values = [value for _, value in points]
        if stacked:
            floor = [base.get(at, 0.0) for at, _ in points]
            values = [value + low for value, low in zip(values, floor, strict=True)]
            base.update({at: value for (at, _), value in zip(points, values, strict=True)})
            axes.fill_between(seconds, floor, values, color=colour, alpha=0.35, lw=0)
        axes.plot(seconds, values, color=colour, lw=1.3, label=label)
        top = max([top, *(value for value in values if not math.isnan(value))])
    bound = defaults["thresholds"]["steps"][-1]["value"]
    if defaults["custom"]["thresholdsStyle"]["mode"] == "line" and bound <= top * 3:
        axes.axhline(bound, color=BAD, lw=1, ls="--")
        top = max(top, bound)
    axes.set_ylim(0, defaults.get("max", top * 1.15 or 1.0) * 1.02)
    unit = defaults["unit"]
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=unit == "none" and top > 4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value, unit)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} s"))
    _plain(axes)
    if len(answered.series) > LEGENDS_MAX:
        axes.plot([], [], " ", label=f"and {len(answered.series) - LEGENDS_MAX} more")
    longest = max((len(legend) for legend, _ in found), default=0)
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(-0.06, -0.11),
        ncols=2 if longest > 24 else 4,
        fontsize=7.5,
        frameon=False,
        handlelength=1.2,
        columnspacing=1.0,
        labelspacing=0.25,
    )


def _with_gaps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a line, and one that is no number wherever there were none for a while."""
    found: list[tuple[float, float]] = []
    for at, value in points:
        if found and at - found[-1][0] > STEP_S * 1.5:
            found.append((found[-1][0] + STEP_S, math.nan))
        found.append((at, value))
    return found


def _stat(axes: Axes, answered: Answered, began_s: float) -> None:
    axes.axis("off")
    found = [(legend, series.points[-1][1]) for legend, series in answered.series if series.points]
    defaults = answered.panel["fieldConfig"]["defaults"]
    for index, (legend, value) in enumerate(found):
        x = (index + 0.5) / len(found)
        colour = _judged(value, defaults["thresholds"]["steps"])
        text = shown(value, defaults["unit"])
        axes.text(x, 0.58, text, size=24, weight="bold", color=colour, ha="center", va="center")
        axes.text(x, 0.05, legend, size=8.5, color=FAINT, ha="center", va="center")


def _bars(axes: Axes, answered: Answered, began_s: float) -> None:
    found = [(legend, series.points[-1][1]) for legend, series in answered.series if series.points]
    found.reverse()
    unit = answered.panel["fieldConfig"]["defaults"]["unit"]
    slots = max(len(found), 4)
    places = range(slots - len(found), slots)
    axes.barh(places, [value for _, value in found], color=COLOURS[0], height=0.4)
    top = max((value for _, value in found), default=0.0)
    axes.set_xlim(0, top * 1.2 or 1.0)
    axes.set_ylim(-0.5, slots - 0.1)
    axes.set_yticks([])
    for index, (legend, value) in zip(places, found, strict=True):
        axes.text(
            0.005,
            index + 0.38,
            f"{legend}: {shown(value, unit)}",
            size=8,
            color=INK,
            va="center",
            transform=axes.get_yaxis_transform(),
        )
    _plain(axes)
    axes.set_xticks([])


def _judged(value: float, steps: Sequence[Json]) -> str:
    colour = GOOD if len(steps) > 1 else INK
    for step in steps[:]:
        if len(steps) > 1 and (step["value"] is None or value >= step["value"]):
            colour = BAD if step["color"] == "red" else GOOD
    return colour


def _plain(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.grid(axis="y", color=GRID, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=FAINT, labelsize=8, length=0)
