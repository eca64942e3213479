"""What `weir loadtest` prints and leaves."""

import io
import json
import sys
from pathlib import Path

import pytest
from weir_command import Weir

from backend.loadtest import command

VIRTUAL = ("loadtest", "--virtual", "h100x4-70b-fp8", "--duration", "20")


class Narrow(io.BytesIO):
    """Takes ten bytes at a time, as a pipe without a buffer may."""

    def write(self, data: object) -> int:
        return super().write(bytes(data)[:10])  # type: ignore[call-overload]


def test_a_pipe_that_takes_a_part_gets_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python alone would forget it."""
    narrow = Narrow()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(narrow))
    command._print("ü" * 1000)
    assert narrow.getvalue().decode() == "ü" * 1000


def test_a_sweep_leaves_its_four_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A line for each request of each run; every figure says that it is simulated."""
    status, out, err = Weir(capsys).run(
        *VIRTUAL, "--sweep", "--rates", "1,2", "--seeds", "2", "--output", str(tmp_path)
    )
    assert status == 0, err
    assert out.startswith("SIMULATED")
    assert f"written to {tmp_path}" in err
    lines = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
    assert {line["run"] for line in lines} == {
        f"{rate} rps, seed {seed}" for rate in (1, 2) for seed in (0, 1)
    }
    assert "SIMULATED" in (tmp_path / "report.html").read_text()
    parameters = json.loads((tmp_path / "summary.json").read_text())["parameters"]
    assert parameters["rates"] == "1, 2"
    assert parameters["virtual"] == "h100x4-70b-fp8"


def test_several_seeds_of_one_rate_have_a_folder_each(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Inside the one that was named; one seed is written into it directly."""
    status, out, _ = Weir(capsys).run(
        *VIRTUAL, "--rate", "1", "--seeds", "2", "--output", str(tmp_path / "two")
    )
    assert (status, out.count("SIMULATED")) == (0, 2)
    assert out.splitlines()[-1].startswith("2 seeds together (simulated): attainment ")
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == ["seed-0", "seed-1"]
    Weir(capsys).run(*VIRTUAL, "--rate", "1", "--output", str(tmp_path / "one"))
    assert (tmp_path / "one" / "summary.json").exists()


def test_an_old_report_does_not_pass_for_the_new_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Seeds after one run, one run after seeds: what was there before under a report's names goes.
    What somebody else put there stays."""
    one = (*VIRTUAL, "--rate", "1", "--output", str(tmp_path))
    report = {"summary.json", "requests.jsonl", "plot.png", "report.html"}
    (tmp_path / "notes.txt").write_text("mine")
    Weir(capsys).run(*one)
    assert {path.name for path in tmp_path.iterdir()} == {*report, "notes.txt"}
    Weir(capsys).run(*one, "--seeds", "2")
    assert {path.name for path in tmp_path.iterdir()} == {"seed-0", "seed-1", "notes.txt"}
    (tmp_path / "seed-1" / "notes.txt").write_text("mine")
    Weir(capsys).run(*one)
    assert {path.name for path in tmp_path.iterdir()} == {*report, "seed-1", "notes.txt"}
    assert [path.name for path in (tmp_path / "seed-1").iterdir()] == ["notes.txt"]


def test_a_folder_that_cannot_be_made_is_a_bad_option(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Said before anything is run."""
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "inside"
    refusal = Weir(capsys).refused(*VIRTUAL, "--rate", "1", "--output", str(folder))
    assert "--output cannot be used" in refusal
