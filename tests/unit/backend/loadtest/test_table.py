"""A run and a sweep as text: units, dashes, what is simulated, and what is wrong."""

import msgspec
import pytest
from made_up_runs import dead_run, lively_run, outcome, run_of, swept

from backend.loadtest.knee import Knee, Trial
from backend.loadtest.run_table import run_facts
from backend.loadtest.summarise import summarise
from backend.loadtest.sweep import judged, knee_text, sweep_facts, trial
from backend.loadtest.table import Table, milliseconds, percent, table_lines, text


def shown(simulated: bool | None) -> str:
    """A small run."""
    outcomes = [outcome(at, send_at_ms=at * 1_000) for at in range(10)]
    return text(run_facts(summarise(run_of(outcomes, simulated=simulated, rows_written=10))))


def test_a_simulated_run_says_so_first() -> None:
    """With its profile; a real one does not, and an unknown one says that it is unknown."""
    assert shown(True).startswith("SIMULATED (profile h100x4-70b-fp8): http://target\n")
    assert shown(False).startswith("Load test: http://target\n")
    assert "does not say whether it is simulated" in shown(None).splitlines()[0]


def test_figures_carry_their_units() -> None:
    """Ten requests a second apart, each 100 ms to a first token and 10 ms for each of ten more."""
    lines = dict(line.split("  ", 1) for line in shown(False).splitlines() if "  " in line)
    assert lines["rate"].strip() == "1.00 rps offered, 1.00 rps achieved"
    tokens = "1,000 input tok/s, 600 of them cached, 11 output tok/s"
    assert lines["tokens"].strip() == tokens
    assert lines["rows"].strip() == "rows 10 = requests finished 10"
    assert lines["ends"].strip() == "10 ok"
    assert lines["hit rate"].strip().startswith("60.0 % in the window")
    row = next(line for line in shown(False).splitlines() if line.startswith("all "))
    ttft, tpot, itl, e2e = ["100"] * 3, ["10.0"] * 3, ["10.0"] * 3, ["200"] * 3
    assert row.split() == ["all", "10", "10", "100.0", "1.00", *ttft, *tpot, *itl, *e2e]


def test_a_mismatch_and_a_refusal_cannot_be_missed() -> None:
    """They stand above the figures."""
    late = run_of([outcome(at, lag_ms=50) for at in range(10)], rows_written=3)
    lines = text(run_facts(summarise(late))).splitlines()
    assert lines[1].startswith("! REFUSED: the load generator was the bottleneck")
    assert any(line.startswith("! Usage records MISMATCH") for line in lines)
    assert any(line.split()[:2] == ["rows", "MISMATCH:"] for line in lines)


def test_what_was_not_measured_is_a_dash() -> None:
    """Nothing ended: no latency, and still a table."""
    dead = text(run_facts(summarise(dead_run(2))))
    row = next(line for line in dead.splitlines() if line.startswith("all "))
    assert row.split() == ["all", "120", "0", "0.0", "0.00", *["–"] * 12]


def test_columns_are_aligned() -> None:
    """Words to the left, figures to the right."""
    table = Table("", ("name", "ms"), [("a", "1"), ("longer", "1,000")])
    assert table_lines(table) == ["name       ms", "a           1", "longer  1,000"]


@pytest.mark.parametrize(
    ("share", "words"),
    [(None, "–"), (0.0, "0.0"), (1.0, "100.0"), (0.9999, ">99.9"), (0.0001, "<0.1"), (0.5, "50.0")],
)
def test_all_and_nothing_are_never_rounded_to(share: float | None, words: str) -> None:
    """One failure in ten thousand is not none."""
    assert percent(share) == words


def test_milliseconds_have_a_decimal_where_it_matters() -> None:
    """Below a hundred."""
    assert (milliseconds(39.96), milliseconds(1234.5), milliseconds(None)) == ("40.0", "1,234", "–")


def test_a_sweep_has_a_row_a_rate_and_its_knee() -> None:
    """Two workers of seven: ten passes, sixteen does not."""
    sweep = swept([10.0, 16.0], seeds=2)
    facts = sweep_facts(sweep)
    (table,) = facts.tables
    assert [row[-1] for row in table.rows] == ["pass", "fail"]
    assert [row[1] for row in table.rows] == ["2", "2"]
    words = dict(facts.lines)["knee"]
    assert words.startswith("10 rps (attainment 9")
    assert "16 rps failed: attainment under 95 %" in words
    assert "95 % interval" in words
    assert facts.heading.startswith("SIMULATED")


def test_the_interactive_class_decides_where_there_is_one() -> None:
    """Batch has no target to meet."""
    slow = [
        outcome(at, send_at_ms=at * 1_000, ttft_ms=5_000, traffic_class="batch") for at in range(5)
    ]
    fast = [outcome(at, send_at_ms=at * 1_000) for at in range(5)]
    mixed = summarise(run_of([*slow, *fast]))
    assert trial(mixed).attainment_share == 1
    assert mixed.all.goodput.attainment_share == 0.5
    assert judged(summarise(run_of(slow))).name == "all"


def test_a_knee_is_said_however_the_search_ended() -> None:
    """Nothing run, none found, and none beyond."""
    knee = Knee(4.0)
    assert knee_text(knee.result) == "none: nothing was run"
    knee.observe(4.0, [Trial(seed=1, attainment_share=0.2, goodput_rps=1)])
    assert knee_text(knee.result).startswith("none: 4 rps failed: attainment under 95 %")
    knee.observe(4.0, [Trial(seed=1, attainment_share=1.0, goodput_rps=4)])
    assert knee_text(knee.result) == (
        "at least 4 rps (attainment 100.0 %, one seed, goodput 4.00 rps): no rate failed"
    )


def test_a_sweep_names_the_rates_that_a_doubt_is_of() -> None:
    """Once each, however many seeds said so."""
    sweep = swept([2.0, 4.0], seeds=2)
    points = [
        msgspec.structs.replace(
            point,
            summaries=[msgspec.structs.replace(each, warnings=["odd"]) for each in point.summaries],
        )
        for point in sweep.points
    ]
    facts = sweep_facts(msgspec.structs.replace(sweep, points=points))
    assert list(facts.notices) == ["odd (at 2, 4 rps)"]


def test_tenants_are_shown_where_there_are_several() -> None:
    """One tenant is all."""
    assert "tenant-01" in text(run_facts(summarise(lively_run(4))))
    assert "acme" not in shown(False)
