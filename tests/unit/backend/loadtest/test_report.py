"""The files of a report: each complete in itself, and the page with nothing outside."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from made_up_runs import SHA256, lively_run, outcome, run_of, swept

from backend.loadtest.report import (
    Parameters,
    RequestLine,
    RunDocument,
    SweepDocument,
    write_requests,
    write_run,
    write_sweep,
)
from backend.loadtest.run import TargetFacts
from backend.loadtest.summarise import summarise

PARAMETERS: Parameters = {
    "rate_rps": 8,
    "sweep": False,
    "trace": "<script>alert(1)</script>",
    "model": None,
}


class Links(HTMLParser):
    """Every address that a browser would ask for, and every tag."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        self.tags.add(tag)
        self.addresses += [
            value or "" for name, value in attrs if name in {"src", "href", "xlink:href", "data"}
        ]


def test_a_run_leaves_four_files(tmp_path: Path) -> None:
    """In a directory that need not be there."""
    run = lively_run(8, seconds=30)
    summary = summarise(run, warmup_ms=5_000)
    assert write_run(tmp_path / "new" / "run", run, summary, PARAMETERS) is None
    names = {path.name for path in (tmp_path / "new" / "run").iterdir()}
    assert names == {"summary.json", "requests.jsonl", "plot.png", "report.html"}


def test_the_summary_says_what_was_asked_and_found(tmp_path: Path) -> None:
    """It reads back as it was, with the workload, the seed and the target."""
    run = lively_run(8, seconds=30)
    summary = summarise(run, warmup_ms=5_000)
    write_run(tmp_path, run, summary, PARAMETERS)
    document = msgspec.json.decode((tmp_path / "summary.json").read_bytes(), type=RunDocument)
    assert document == RunDocument(parameters=PARAMETERS, summary=summary)
    assert (document.schema_version, document.kind) == (1, "run")
    assert document.summary.load.workload_sha256 == SHA256
    assert document.summary.load.seed == 7
    assert document.summary.target.simulated is True


def test_every_request_has_its_line(tmp_path: Path) -> None:
    """The warm-up's too; what was not measured is null."""
    answered = outcome(0, send_at_ms=100, lag_ms=5, ttft_ms=200, tpot_ms=20)
    refused = outcome(1, send_at_ms=300, ttft_ms=None, end="rate_limited")
    run = run_of([answered, refused], simulated=True)
    write_run(tmp_path, run, summarise(run), {})
    lines = (tmp_path / "requests.jsonl").read_bytes().splitlines()
    first, second = (msgspec.json.decode(line, type=RequestLine) for line in lines)
    assert (first.sent_at_ms, first.ttft_ms, first.tpot_ms, first.e2e_ms) == (105, 200, 20, 400)
    assert (first.itl_max_ms, first.good, first.end) == (20, True, "ok")
    assert first.simulated is run.target.simulated is True
    assert (second.ttft_ms, second.itl_max_ms, second.good) == (None, None, False)


def test_the_page_needs_nothing_outside_and_runs_nothing(tmp_path: Path) -> None:
    """Its links are the files beside it and places within its picture."""
    run = lively_run(8, seconds=30)
    run.target = TargetFacts("http://target/<b>&", simulated=True, step_times="p")
    write_run(tmp_path, run, summarise(run), PARAMETERS)
    text = (tmp_path / "report.html").read_text()
    links = Links()
    links.feed(text)
    outside = [address for address in links.addresses if not address.startswith("#")]
    assert outside == ["summary.json", "requests.jsonl", "plot.png"]
    assert not links.tags & {"script", "iframe", "link", "img", "b"}
    assert not re.search(r"url\((?!#)|@import", text)
    assert "&lt;script&gt;alert(1)" in text
    assert "http://target/&lt;b&gt;&amp;" in text
    assert "Every figure on this page is simulated" in text
    assert "svg" in links.tags


def test_without_matplotlib_all_but_the_picture_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier run's picture does not stay; the page says what to install."""
    run = run_of([outcome(at, send_at_ms=at * 1_000) for at in range(10)])
    (tmp_path / "plot.png").write_bytes(b"an earlier run's")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    reason = write_run(tmp_path, run, summarise(run), {})
    assert reason is not None
    assert "weir[loadtest]" in reason
    assert {path.name for path in tmp_path.iterdir()} == {
        "summary.json",
        "requests.jsonl",
        "report.html",
    }
    text = (tmp_path / "report.html").read_text()
    assert "No picture: plots need matplotlib" in text
    assert "plot.png" not in text
    assert "is simulated" not in text


def test_a_sweep_leaves_its_knee_and_the_requests_of_its_runs(tmp_path: Path) -> None:
    """Runs are added one by one, each by its name."""
    sweep = swept([10.0, 16.0])
    targets = sweep.points[0].summaries[0].all.goodput.targets
    for name, rate in (("10 rps", 10), ("16 rps", 16)):
        run = lively_run(rate, seconds=5)
        write_requests(tmp_path / "requests.jsonl", [(name, run)], targets, append=True)
    assert write_sweep(tmp_path, sweep, {"seeds": 1}, output_goal_tokens_per_s=8_000) is None
    document = msgspec.json.decode((tmp_path / "summary.json").read_bytes(), type=SweepDocument)
    assert document.sweep.knee.knee_rps == 10
    assert document.kind == "sweep"
    lines = (tmp_path / "requests.jsonl").read_bytes().splitlines()
    assert {msgspec.json.decode(line, type=RequestLine).run for line in lines} == {
        "10 rps",
        "16 rps",
    }
    assert "knee 10 rps" in (tmp_path / "report.html").read_text()
