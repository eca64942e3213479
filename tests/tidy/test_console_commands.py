"""A command that the console tells people to run is one that `weir` has."""

import re
from pathlib import Path

import click
import pytest

from gateway.cli import weir

CONSOLE = Path(__file__).resolve().parents[2] / "gateway" / "console"
FILES = sorted([*CONSOLE.rglob("*.html"), *CONSOLE.glob("*.py")])
COMMAND = re.compile(r"\bweir ([a-z][a-z-]*(?: [a-z][a-z-]*)*)")
TOLD = [
    (file.relative_to(CONSOLE).as_posix(), words)
    for file in FILES
    for words in COMMAND.findall(file.read_text())
]


def unknown_word(words: list[str]) -> str | None:
    """The first word that is no command of the group before it; what follows a command is its
    arguments, or the rest of the sentence."""
    found: click.Command = weir
    for word in [*words, ""]:
        if not isinstance(found, click.Group):
            return None
        following = found.get_command(click.Context(found), word)
        if following is None:
            return None if found.invoke_without_command else word or "nothing"
        found = following
    return None


@pytest.mark.parametrize(("file", "words"), TOLD)
def test_it_is_there(file: str, words: str) -> None:
    """Down to the subcommand."""
    assert unknown_word(words.split(" ")) is None, (file, words)


def test_some_are_told() -> None:
    """Of templates and of modules; and one that is not there is found."""
    assert {Path(file).suffix for file, _ in TOLD} == {".html", ".py"}
    assert unknown_word(["dead-letter", "list"]) == "dead-letter"
    assert unknown_word(["model", "register"]) == "register"
    assert unknown_word(["model"]) == "nothing"
