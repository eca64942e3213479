"""`docs/cases.md` and the tests say the same of every case."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cases.md"
CASES = {f"S{number:02}" for number in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 13, 14, 15, 16, 18, 19, 20,
                                        21, 22, 24, 25, 26, 27)}  # fmt: skip
"""The cases of streaming, token counts and protocol."""

ROW = re.compile(r"^\| (S\d\d) \|.*\| ([^|]*) \|$", re.MULTILINE)
NOT = "not: "
IN_NAME = re.compile(r"_s(\d\d)(?=_|$)")
IN_DOCSTRING = re.compile(r"\bS(\d\d)\b")


def on_the_page() -> dict[str, str]:
    """What the page's last column says of each case. Fails where it has one twice."""
    rows = ROW.findall(PAGE.read_text())
    assert len(rows) == len({case for case, _ in rows}), "a case is listed twice"
    return dict(rows)


def named_by(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The cases that a test names."""
    numbers = IN_NAME.findall(function.name)
    numbers += IN_DOCSTRING.findall(ast.get_docstring(function) or "")
    return {f"S{number}" for number in numbers}


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
    listed = on_the_page()
    assert set(listed) == CASES
    assert list(listed) == sorted(listed)


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
    assert set(in_the_tests()) - CASES == set()


def test_a_name_and_a_docstring_both_count() -> None:
    """What is looked for, on an example."""
    source = 'def test_s09_zero() -> None:\n    """S10 and V41; not S1, XS12 or S123."""\n'
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert named_by(function) == {"S09", "S10"}
