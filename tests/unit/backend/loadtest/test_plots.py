"""What the pictures say, read from their SVG: its texts are texts."""

import sys

import pytest
from made_up_runs import dead_run, lively_run, outcome, run_of, swept

from backend.loadtest.plots import PlotsUnavailable, png, svg
from backend.loadtest.run_plot import run_figure
from backend.loadtest.summarise import summarise
from backend.loadtest.sweep_plot import sweep_figure


def test_a_sweep_shows_knee_targets_goal_and_workers() -> None:
    """And SIMULATED across each of its four panels, beside the heading."""
    drawn = svg(
        sweep_figure(swept([10.0, 16.0]), lively_run(10).samples, "the run at 10 rps", 8_000)
    )
    for words in (
        "knee 10 rps",
        "TTFT target 800 ms",
        "TPOT target 40 ms",
        "goal 8,000 tokens/s (right)",
        "goodput (rps)",
        "Workers over time (the run at 10 rps)",
        "sim-1",
        "16 rps",
    ):
        assert words in drawn
    assert drawn.count(">SIMULATED<") == 4


def test_a_run_shows_its_targets_and_its_time() -> None:
    """Both classes, what was sent and what was good."""
    run = lively_run(8)
    drawn = svg(run_figure(run, summarise(run, warmup_ms=20_000)))
    words = ("target 800 ms", "target 40 ms", "interactive", "batch", "met every target", "warm-up")
    assert [each for each in words if each not in drawn] == []
    assert drawn.count(">SIMULATED<") == 4


def test_a_real_target_is_not_called_simulated() -> None:
    """Nowhere."""
    run = run_of([outcome(at, send_at_ms=at * 1_000) for at in range(10)])
    assert "SIMULATED" not in svg(run_figure(run, summarise(run)))


def test_a_picture_of_nothing_is_still_a_picture() -> None:
    """No token, no sample, one rate, no knee: nothing to draw and no error."""
    assert "no samples" in svg(sweep_figure(swept([2.0], made=dead_run)))
    run = dead_run(2.0)
    assert "no samples" in svg(run_figure(run, summarise(run)))


def test_the_knee_of_a_sweep_that_never_failed_is_a_least() -> None:
    """And is said to be."""
    assert "knee ≥ 4 rps" in svg(sweep_figure(swept([2.0, 4.0])))


def test_a_png_is_a_png() -> None:
    """Of a size that can be read on a page."""
    run = lively_run(4, seconds=20)
    drawn = png(run_figure(run, summarise(run)))
    assert drawn.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(drawn[16:20]) >= 1_200


def test_pictures_are_the_same_for_the_same_run() -> None:
    """A page can be compared with an earlier one."""
    run = lively_run(4, seconds=20)
    summary = summarise(run)
    assert svg(run_figure(run, summary)) == svg(run_figure(run, summary))


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run = lively_run(4, seconds=20)
    with pytest.raises(PlotsUnavailable, match=r"pip install 'weir\[loadtest\]'"):
        run_figure(run, summarise(run))
