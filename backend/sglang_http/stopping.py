"""Stop strings: found wherever they fall across token borders, never shown in the text."""

from collections.abc import Sequence


class StopScanner:
    """Scans one sequence's text for stop strings.

    Text that could be the beginning of a stop string is held back until it is decided.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""

    def push(self, text: str) -> tuple[str, str | None]:
        """Take new text. Returns what may be shown, and the stop string that was met, if any;
        after a match the scanner is spent."""
        if not self._stops:
            return text, None
        window = self._held + text
        matches = [(window.find(stop), stop) for stop in self._stops]
        found = min((match for match in matches if match[0] >= 0), default=None)
        if found is not None:
            self._held = ""
            return window[: found[0]], found[1]
        keep = max(_overlap(window, stop) for stop in self._stops)
        self._held = window[len(window) - keep :]
        return window[: len(window) - keep], None

    def flush(self) -> str:
        """What was held back, when the sequence ends without a match."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if stop.startswith(text[len(text) - length :]):
            return length
    return 0
