"""How `weir dev` tells a person what it is doing: a line a step, begun when the step begins."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

NAME_COLUMNS = 10


class Terminal:
    """Standard output, a terminal or not. It may go away; what runs goes on."""

    def __init__(self) -> None:
        self._within_line = False

    def say(self, line: str) -> None:
        """Print a line of its own, also while a step is under way."""
        self._write(("\n" if self._within_line else "") + line + "\n")
        self._within_line = False

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Print that a step begins, and at its end how long it took, with the words added to what
        is yielded."""
        self._write(f"  {name:<{NAME_COLUMNS}}")
        self._within_line = True
        since = time.monotonic()
        words: list[str] = []
        try:
            yield words
        except BaseException:
            if self._within_line:
                self.say("")
            raise
        words.append(f"{time.monotonic() - since:.1f} s")
        start = "" if self._within_line else f"  {name:<{NAME_COLUMNS}}"
        self._within_line = False
        self.say(start + ", ".join(words))

    def _write(self, text: str) -> None:
        with suppress(OSError):
            click.echo(text, nl=False)
