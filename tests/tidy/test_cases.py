"""`docs/cases.md` and the tests say the same of every case."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cases.md"
KINDS = {
    "R": (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 21, 23, 24, 26, 27, 28, 29),
    "C": (1, 2, 3, 5, 7, 8, 9, 10, 11, 13, 14, 15),
    "L": (1, 2, 3, 5, 6, 8, 9, 10, 11, 13, 14, 15, 16, 18, 20, 21, 22, 23),
    "B": (1, 2, 3, 4, 6, 7, 9, 10, 11, 12, 13, 15, 17, 18, 19, 20, 21, 23, 25, 26, 27),
    "S": (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 13, 14, 15, 16, 18, 19, 20, 21, 22, 24, 25, 26, 27),
    "Q": (1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 25, 26, 27, 28),
    "D": (1, 3, 4, 5, 7, 8, 10, 11, 12, 13, 15, 16),
    "M": (1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 22, 23, 24, 25),
    "V": (
        2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 16, 17, 18, 20, 22, 24, 25, 26, 27, 28, 29,
        30, 31, 32, 34, 35, 36, 37, 39, 41, 42, 43, 44, 46, 47, 48,
    ),
}  # fmt: skip
"""Reservations, sequences, limiter arithmetic, budgets; streams with token counts and protocol;
the queue with capacity and fallback; departures and failures; metering; invoices. In the order of
the page."""
CASES = [f"{kind}{number:02}" for kind, numbers in KINDS.items() for number in numbers]

ROW = re.compile(r"^\| ([A-Z]\d\d) \|.*\| ([^|]*) \|$", re.MULTILINE)
NOT = "not: "
IN_NAME = re.compile(rf"_([{''.join(KINDS).lower()}]\d\d)(?=_|$)")
IN_DOCSTRING = re.compile(rf"\b([{''.join(KINDS)}]\d\d)\b")


def on_the_page() -> dict[str, str]:
    """What the page's last column says of each case. Fails where it has one twice."""
    rows = ROW.findall(PAGE.read_text())
    assert len(rows) == len({case for case, _ in rows}), "a case is listed twice"
    return dict(rows)


def named_by(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The cases that a test names."""
    found = {name.upper() for name in IN_NAME.findall(function.name)}
    return found | set(IN_DOCSTRING.findall(ast.get_docstring(function) or ""))


def in_the_tests() -> dict[str, set[str]]:
    """The files whose tests name each case."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for case in named_by(node) if node.name.startswith("test_") else ():
                found[case].add(path.relative_to(ROOT).as_posix())
    return found


def test_the_page_has_every_case_and_no_other() -> None:
    """In order, so that one is found at a glance."""
    assert list(on_the_page()) == CASES


def test_every_case_is_tested_or_has_a_reason() -> None:
    """Never both, never neither; a file that the page names has a test that names the case."""
    tested = in_the_tests()
    wrong = []
    for case, says in on_the_page().items():
        files = set(re.findall(r"`(tests/[^`]+)`", says))
        reason = says.removeprefix(NOT) if says.startswith(NOT) else ""
        if reason and (files or tested[case] or len(reason.split()) < 3):
            wrong.append(f"{case} has a reason, and tests: {sorted(tested[case])}")
        if not reason and not files:
            wrong.append(f"{case} has neither tests nor a reason")
        wrong += [f"{case} is not named by a test of {file}" for file in files - tested[case]]
    assert not wrong


def test_no_test_names_a_case_that_is_not_on_the_page() -> None:
    """A typing error would count as a test of nothing."""
    assert set(in_the_tests()) - set(CASES) == set()


def test_a_name_and_a_docstring_both_count() -> None:
    """What is looked for, on an example."""
    source = 'def test_s09_c05() -> None:\n    """S10, L01 and X41; not S1, XS12 or S123."""\n'
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert named_by(function) == {"S09", "C05", "S10", "L01"}
