"""`weir backend` on the command line."""

import importlib.util
from importlib.machinery import ModuleSpec

import pytest
from click.testing import CliRunner

from backend.command import backend


def test_missing_engine_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the platform has no wheel, one line offers something else, with exit status 1."""
    find_spec = importlib.util.find_spec

    def without(name: str) -> ModuleSpec | None:
        return None if name == "mistralrs" else find_spec(name)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    result = CliRunner().invoke(backend, ["local", "--port", "0"])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "--engine simulated" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["local", "--port", "70000"],
        ["local", "--context-length", "9000"],
        ["simulated", "--max-running-requests", "0"],
        ["sometimes"],
    ],
)
def test_bad_input(arguments: list[str]) -> None:
    """A bad option is a usage error."""
    assert CliRunner().invoke(backend, arguments).exit_code == 2
