"""docs/sdks.md, as far as it is made of the rows. `python tests/sdk/document.py` writes it."""

from collections.abc import Iterator
from pathlib import Path

from sdk.failures import CLASSES_ELSEWHERE, Failure
from sdk.rows import ENGINES, NoEffect, Passes, Refused, Row
from sdk.statuses import MIDSTREAM, STATUSES
from sdk.table import SECTIONS

PATH = Path(__file__).resolve().parents[2] / "docs" / "sdks.md"
BEGIN, END = "<!-- rows: made by tests/sdk/document.py -->", "<!-- rows end -->"
_TITLES = {"local": "local", "simulated": "simulated", "sglang": "SGLang"}


def _cell(row: Row, engine: str) -> str:
    outcome = getattr(row, engine)
    if isinstance(outcome, Refused):
        field = f" `{outcome.param}`" if outcome.param else ""
        return _noted(f"{outcome.status} `{outcome.code}`{field}", outcome.note)
    if isinstance(outcome, NoEffect):
        return _noted("no effect", outcome.note)
    assert isinstance(outcome, Passes)
    return _noted("yes", outcome.note)


def _noted(said: str, note: str) -> str:
    return f"{said}: {note}" if note else said


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _section(title: str, rows: tuple[Row, ...]) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    yield _line("asked", *(_TITLES[engine] for engine in ENGINES), "hosted provider")
    yield _line(*("---",) * (len(ENGINES) + 2))
    for row in rows:
        yield _line(row.shows, *(_cell(row, engine) for engine in ENGINES), row.hosted)
    yield ""


def _failure(failure: Failure) -> str:
    classes = CLASSES_ELSEWHERE.get(failure.status, (failure.raised,))
    return _line(
        failure.name,
        str(failure.status or "in the stream"),
        f"`{failure.kind}` / `{failure.code}`",
        f"`{failure.param}`" if failure.param else "",
        " / ".join(f"`{each}`" for each in classes),
        "yes" if failure.waits else "",
    )


def tables() -> str:
    """The tables of the document."""
    lines = [BEGIN, ""]
    for title, rows in SECTIONS.items():
        lines += _section(title, rows)
    lines += ["### Failures", ""]
    head = ("what", "status", "`type` / `code`", "`param`", "raised", "says when to try again")
    lines += [_line(*head), _line(*("---",) * len(head))]
    lines += [_failure(failure) for failure in (*STATUSES, *MIDSTREAM)]
    return "\n".join([*lines, "", END])


def with_tables(text: str) -> str:
    """A document with its tables replaced by those of the rows."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + tables() + after


if __name__ == "__main__":
    PATH.write_text(with_tables(PATH.read_text()))
