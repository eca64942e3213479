"""House rules that no linter knows."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gateway", "billing", "backend", "migrations")
FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 350
BANNED_NAMES = re.compile(r"(^|_)(utils?|helpers?|manager|common|misc)(_|$)")


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_functions_fit_on_a_screen() -> None:
    """No function is longer than 60 lines, its docstring left out."""
    long = []
    for path in sources(*PACKAGES):
        for function in functions(path):
            first = function.body[0]
            documented = ast.get_docstring(function) is not None and len(function.body) > 1
            start = function.body[1].lineno if documented else first.lineno
            lines = (function.end_lineno or start) - start + 1
            if lines > FUNCTION_LINES_MAX:
                long.append(f"{named(path)}:{function.lineno} {function.name} {lines}")
    assert not long


def test_files_fit_in_the_head() -> None:
    """No source or test file is longer than 350 lines."""
    lengths = {
        named(path): len(path.read_text().splitlines()) for path in sources(*PACKAGES, "tests")
    }
    assert not {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX}


def test_names_say_what_a_thing_is() -> None:
    """No file and no function is called a util, helper, manager, common or misc."""
    banned = [named(p) for p in sources(*PACKAGES, "tests") if BANNED_NAMES.search(p.stem)]
    for path in sources(*PACKAGES):
        banned += [
            f"{named(path)} {function.name}"
            for function in functions(path)
            if BANNED_NAMES.search(function.name.lower())
        ]
    assert not banned


@pytest.mark.parametrize("package", PACKAGES)
def test_public_things_are_documented(package: str) -> None:
    """Every module, public class and public top-level function has a docstring."""
    missing = []
    for path in sources(package):
        tree = ast.parse(path.read_text())
        if path.stat().st_size and ast.get_docstring(tree) is None:
            missing.append(named(path))
        missing += [
            f"{named(path)}:{node.lineno} {node.name}"
            for node in tree.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and not node.name.startswith("_")
            and ast.get_docstring(node) is None
        ]
    assert not missing


def test_money_is_never_a_float() -> None:
    """`billing` uses neither float nor round."""
    found = [
        f"{named(path)}:{node.lineno}"
        for path in sources("billing")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) and node.id in {"float", "round"}
    ]
    assert not found


def test_nothing_of_a_developers_machine_is_tracked() -> None:
    """No tracked file names a home folder, a workplace's path or a registry's address."""
    pattern = (
        r"(^|[^A-Za-z0-9_.-])/(work|farm|root|home/[a-z]+)/|files\.pythonhosted|registry\.npmjs"
    )
    found = subprocess.run(
        ["git", "grep", "-nIE", pattern, "--", ".", ":!tests/tidy/test_tidy.py"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


def test_no_benchmark_stands_in_the_way_of_a_package() -> None:
    """A script's own folder is searched first: a module there of a package's name would be found
    in its place, a folder that is no package is not."""
    found = {name for name in PACKAGES if (ROOT / "benchmarks" / f"{name}.py").exists()}
    found |= {name for name in PACKAGES if (ROOT / "benchmarks" / name / "__init__.py").exists()}
    assert not found
