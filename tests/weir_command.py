"""Runs `weir` commands in this process."""

from typing import Any

import msgspec
import pytest

from gateway.cli import main


class Weir:
    """`weir`, with what it prints captured."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of `weir <arguments>`."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        status, printed = leaving.value.code, self._capsys.readouterr()
        assert isinstance(status, int)
        return status, printed.out, printed.err

    def ok(self, *arguments: str) -> str:
        """The output of a command that must succeed and complain of nothing."""
        status, out, err = self.run(*arguments)
        assert (status, err) == (0, ""), err
        return out

    def json(self, *arguments: str) -> Any:
        """What `--json` prints: one document on one line."""
        out = self.ok(*arguments, "--json")
        assert out.count("\n") == 1
        return msgspec.json.decode(out)

    def refused(self, *arguments: str, status: int = 2) -> str:
        """The one line of a command that must fail with that status and print nothing."""
        found, out, err = self.run(*arguments)
        assert (found, out) == (status, "")
        assert err.startswith("weir: ")
        assert err.count("\n") == 1
        return err
