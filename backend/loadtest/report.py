"""What a load test leaves in a directory: `summary.json`, `requests.jsonl`, `plot.png` and
`report.html`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from backend.loadtest.html_page import page
from backend.loadtest.measure import GoodputTargets, e2e_ms, good, tpot_ms, ttft_ms
from backend.loadtest.plots import PlotsUnavailable, png, svg
from backend.loadtest.run import Outcome, Run, WorkerSample
from backend.loadtest.run_plot import run_figure
from backend.loadtest.run_table import run_facts
from backend.loadtest.summary import SCHEMA_VERSION, Summary
from backend.loadtest.sweep import Sweep, sweep_facts
from backend.loadtest.sweep_plot import sweep_figure
from backend.loadtest.table import Facts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY, REQUESTS, PLOT, PAGE = "summary.json", "requests.jsonl", "plot.png", "report.html"
Parameters = Mapping[str, str | int | float | bool | None]
"""What the test was asked to do, by the names its command gives them. Never a key or a prompt."""


class RunDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`summary.json` of one run."""

    schema_version: int = SCHEMA_VERSION
    kind: str = "run"
    parameters: Parameters
    summary: Summary


class SweepDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`summary.json` of a sweep."""

    schema_version: int = SCHEMA_VERSION
    kind: str = "sweep"
    parameters: Parameters
    sweep: Sweep


class RequestLine(msgspec.Struct, frozen=True, kw_only=True):
    """One request in `requests.jsonl`. Instants are milliseconds since the start of its run."""

    run: str
    simulated: bool | None
    """Whether its times are a simulator's; None where the target does not say."""
    number: int
    tenant: str
    traffic_class: str
    send_at_ms: float
    sent_at_ms: float
    first_token_at_ms: float | None
    last_token_at_ms: float | None
    ended_at_ms: float | None
    ttft_ms: float | None
    tpot_ms: float | None
    itl_max_ms: float | None
    e2e_ms: float | None
    planned_prompt_tokens: int
    planned_output_tokens: int
    prompt_tokens: int
    cached_tokens: int | None
    output_tokens: int
    end: str
    good: bool
    status: int | None
    code: str | None
    request_id: str | None
    worker: str | None


def write_run(directory: Path, run: Run, summary: Summary, parameters: Parameters) -> str | None:
    """Write all of one run's files; None, or why there is no picture.

    Raises:
        OSError: the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    document = RunDocument(parameters=parameters, summary=summary)
    _write_json(directory / SUMMARY, document)
    write_requests(directory / REQUESTS, [("", run)], summary.all.goodput.targets)
    return _write_pictures(
        directory,
        run_facts(summary),
        lambda: run_figure(run, summary),
        words="Distributions of TTFT and TPOT, the requests over time, and the workers over time",
        simulated=summary.target.simulated,
        parameters=parameters,
    )


def write_sweep(
    directory: Path,
    sweep: Sweep,
    parameters: Parameters,
    *,
    samples: Sequence[WorkerSample] = (),
    sampled: str = "",
    output_goal_tokens_per_s: float | None = None,
) -> str | None:
    """Write a sweep's files but for its requests, which `write_requests` adds run by run; None, or
    why there is no picture.

    Raises:
        OSError: the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    _write_json(directory / SUMMARY, SweepDocument(parameters=parameters, sweep=sweep))
    return _write_pictures(
        directory,
        sweep_facts(sweep),
        lambda: sweep_figure(sweep, samples, sampled, output_goal_tokens_per_s),
        words="Goodput and latency by offered load with the knee, gaps between tokens, and workers",
        simulated=sweep.points[0].summaries[0].target.simulated,
        parameters=parameters,
    )


def write_requests(
    path: Path, runs: Iterable[tuple[str, Run]], targets: GoodputTargets, *, append: bool = False
) -> None:
    """One line of JSON a request, each with the name of its run."""
    encoder = msgspec.json.Encoder()
    with path.open("ab" if append else "wb") as file:
        for name, run in runs:
            for outcome in run.outcomes:
                file.write(
                    encoder.encode(_line(name, run.target.simulated, outcome, targets)) + b"\n"
                )


def _line(
    run: str, simulated: bool | None, outcome: Outcome, targets: GoodputTargets
) -> RequestLine:
    planned = outcome.planned
    return RequestLine(
        run=run,
        simulated=simulated,
        number=planned.number,
        tenant=planned.tenant,
        traffic_class=planned.traffic_class,
        send_at_ms=planned.send_at_ms,
        sent_at_ms=outcome.sent_at_ms,
        first_token_at_ms=outcome.first_token_at_ms,
        last_token_at_ms=outcome.last_token_at_ms,
        ended_at_ms=outcome.ended_at_ms,
        ttft_ms=ttft_ms(outcome),
        tpot_ms=tpot_ms(outcome),
        itl_max_ms=max(outcome.gaps_ms, default=None),
        e2e_ms=e2e_ms(outcome),
        planned_prompt_tokens=planned.prompt_tokens,
        planned_output_tokens=planned.output_tokens,
        prompt_tokens=outcome.prompt_tokens,
        cached_tokens=outcome.cached_tokens,
        output_tokens=outcome.output_tokens,
        end=outcome.end,
        good=good(outcome, targets),
        status=outcome.status,
        code=outcome.code,
        request_id=outcome.request_id,
        worker=outcome.worker,
    )


def _write_json(path: Path, document: msgspec.Struct) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def _write_pictures(
    directory: Path,
    facts: Facts,
    draw: Callable[[], "Figure"],
    *,
    words: str,
    simulated: bool | None,
    parameters: Parameters,
) -> str | None:
    missing: str | None = None
    picture: str | None = None
    files = [SUMMARY, REQUESTS]
    # A picture of an earlier run must not pass for this one's.
    (directory / PLOT).unlink(missing_ok=True)
    try:
        figure = draw()
        (directory / PLOT).write_bytes(png(figure))
        picture = svg(figure)
        files.append(PLOT)
    except PlotsUnavailable as error:
        missing = words = str(error)
    text = page(
        facts,
        simulated=simulated,
        picture_svg=picture,
        picture_words=words,
        parameters=[(name, _shown(value)) for name, value in parameters.items()],
        files=[name for name in files if (directory / name).exists()],
    )
    (directory / PAGE).write_text(text, encoding="utf-8")
    return missing


def _shown(value: str | float | bool | None) -> str:
    if value is None:
        return "not set"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
