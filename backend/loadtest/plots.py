"""Pictures of a run and of a sweep. matplotlib is loaded here only, when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours: apart for every common kind of colour blindness, and in grey.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, GREY, LIGHT = "#CC79A7", "#56B4E9", "#5A5A5A", "#C8C8C8"
SERIES = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, GREY)
DASHES = ("-", "--", "-.", ":")
PIXELS_PER_INCH = 110
_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 9,
    "grid.alpha": 0.25,
    "legend.fontsize": 8,
    "legend.framealpha": 0.9,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "weir",
}


class PlotsUnavailable(RuntimeError):
    """matplotlib is not installed; the text says what to install."""


@contextmanager
def drawing() -> Iterator[None]:
    """The style of all pictures, for as long as one is drawn or written.

    Raises:
        PlotsUnavailable: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra: everything else works without it
    except ImportError as error:
        raise PlotsUnavailable("plots need matplotlib: pip install 'weir[loadtest]'") from error
    with mpl.rc_context(_STYLE):
        yield


def four_panels(title: str, subtitle: str, simulated: bool | None) -> tuple[Figure, list[Axes]]:
    """An empty page of four, within `drawing`. A simulated one says so across everything drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(13, 9.2))
    FigureCanvasAgg(figure)
    panels = [figure.add_subplot(2, 2, at + 1) for at in range(4)]
    figure.subplots_adjust(left=0.065, right=0.94, top=0.88, bottom=0.065, hspace=0.3, wspace=0.36)
    figure.text(0.065, 0.96, title, fontsize=14, fontweight="bold")
    figure.text(0.065, 0.932, subtitle, fontsize=9, color=GREY)
    for panel in panels if simulated else ():
        box = panel.get_position()
        figure.text(
            (box.x0 + box.x1) / 2,
            (box.y0 + box.y1) / 2,
            "SIMULATED",
            fontsize=34,
            fontweight="bold",
            color=GREY,
            alpha=0.13,
            ha="center",
            va="center",
            rotation=20,
        )
    return figure, panels


def png(figure: Figure) -> bytes:
    """The picture for a file."""
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=PIXELS_PER_INCH)
    return written.getvalue()


def svg(figure: Figure) -> str:
    """The picture for a page: the element alone, without prologue or time of writing."""
    written = io.StringIO()
    with drawing():
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    text = written.getvalue()
    return text[text.index("<svg") :]


def log_axis(panel: Axes, which: Literal["x", "y"]) -> None:
    """Powers of ten and their doubles and halves, in plain figures."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415

    if which == "x":
        panel.set_xscale("log")
    else:
        panel.set_yscale("log")
    axis = panel.xaxis if which == "x" else panel.yaxis
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:,g}")
    axis.set_minor_formatter(NullFormatter())


def thousands(axis: Axis) -> None:
    """Whole figures with their thousands set off."""
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def share_axis(panel: Axes, label: str) -> None:
    """Shares from none to all, as figures out of a hundred."""
    panel.set_ylim(0, 1.02)
    panel.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "20", "40", "60", "80", "100"])
    panel.set_ylabel(label)


def target_line(panel: Axes, value: float, words: str, color: str) -> None:
    """A dashed line across, named at its left end."""
    panel.axhline(value, color=color, linestyle=(0, (5, 3)), linewidth=1)
    panel.annotate(
        words,
        (0.01, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        color=color,
        fontsize=8,
    )


def target_mark(panel: Axes, value: float, words: str, color: str) -> None:
    """A dashed line upward, named along it, and kept in sight."""
    left, right = panel.get_xlim()
    panel.set_xlim(min(left, value / 1.2), max(right, value * 1.2))
    panel.axvline(value, color=color, linestyle=(0, (5, 3)), linewidth=1)
    panel.annotate(
        words,
        (value, 0.5),
        xycoords=("data", "axes fraction"),
        xytext=(-3, 0),
        textcoords="offset points",
        color=color,
        fontsize=8,
        ha="right",
        va="center",
        rotation=90,
    )


def distribution_line(
    panel: Axes, values: Sequence[float], label: str, color: str, dash: str = "-"
) -> None:
    """A distribution given at equal steps of its share."""
    shares = [(at + 1) / len(values) for at in range(len(values))]
    panel.plot(values, shares, label=label, color=color, linestyle=dash)
