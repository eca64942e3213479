"""`weir backend sglang` on the command line, up to where SGLang takes over."""

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result

from backend.command import backend


class Taken(Exception):
    """SGLang has taken over; nothing after it runs."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(backend, ["sglang", "--model-path", "m", "--model", "m", *arguments])


def interpreter(folder: Path, status: int) -> str:
    """A program that says by its exit status whether it has SGLang."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


def test_it_becomes_sglang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter that was named, its launch_server, the flags, what follows `--`."""
    taken: list[list[str]] = []

    def execv(path: str, arguments: list[str]) -> NoReturn:
        taken.append([path, *arguments])
        raise Taken

    monkeypatch.setattr(os, "execv", execv)
    python = interpreter(tmp_path, 0)
    result = run("--python", python, "--port", "7", "--", "--attention-backend", "fa3")
    assert isinstance(result.exception, Taken)
    (called,) = taken
    assert called[:4] == [python, python, "-m", "sglang.launch_server"]
    assert "--port=7" in called
    assert called[-2:] == ["--attention-backend", "fa3"]


def test_no_sglang_is_one_line(tmp_path: Path) -> None:
    """It says what to install, or how to name another Python."""
    result = run("--python", interpreter(tmp_path, 1))
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "--python" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--python", "/no/such/python"],
        ["--python", sys.executable, "--", "--schedule-low-priority-values-first"],
        ["--kv-fraction", "1"],
        ["--kv-fraction", "0"],
        ["--tensor-parallel-size", "0"],
        ["--port", "70000"],
    ],
)
def test_bad_input(arguments: list[str]) -> None:
    """A bad option is a usage error."""
    assert run(*arguments).exit_code == 2
