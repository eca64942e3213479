"""Letters of a PDF: which font has each, and how wide it is.

Noto Sans is embedded and has Latin, Greek, Cyrillic and Vietnamese. Chinese, Japanese and Korean
letters take fonts that every reader of PDF knows by name and has of its own. What no font has is
drawn as an empty box, never left out.
"""

from collections.abc import Iterator
from functools import cache
from importlib.resources import as_file, files
from itertools import groupby
from typing import NamedTuple

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont

LETTERS = "NotoSans"
JAPANESE, KOREAN, CHINESE = "HeiseiKakuGo-W5", "HYGothic-Medium", "STSong-Light"

FIRST_FAR_EASTERN = "\u1100"
"""No letter before it is Chinese, Japanese or Korean."""
_KANA = ((0x3040, 0x30FF), (0x31F0, 0x31FF), (0xFF65, 0xFF9F))
_HANGUL = ((0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7A3))
_HAN = ((0x2E80, 0x2FDF), (0x3000, 0x303F), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0xFF00, 0xFFEF))


class Run(NamedTuple):
    """Letters that stand beside each other in one font."""

    font: str
    text: str


def runs(text: str) -> list[Run]:
    """`text` in pieces of one font each."""
    if max(text, default="") < FIRST_FAR_EASTERN:
        return [Run(LETTERS, text)] if text else []
    far_eastern = _far_eastern(text)
    named = ((_font_of(letter, far_eastern), letter) for letter in text)
    return [
        Run(font, "".join(letter for _, letter in pieces))
        for font, pieces in groupby(named, key=lambda pair: pair[0])
    ]


def width(text: str, size: int) -> int:
    """How wide `text` is at `size` points, in thousandths of a point."""
    return sum(_thousandths(run) for run in runs(text)) * size


def wrapped(text: str, size: int, width_max: int) -> list[str]:
    """`text` in lines of at most `width_max` thousandths of a point: broken at blanks where there
    are any, and within a word that is wider than a line."""
    lines: list[str] = []
    current = ""
    for word in text.split():
        longer = f"{current} {word}".strip()
        if width(longer, size) <= width_max:
            current = longer
            continue
        lines += [current] if current else []
        *whole, current = _pieces(word, size, width_max)
        lines += whole
    return [*lines, current]


def shortened(text: str, size: int, width_max: int) -> str:
    """`text`, or as much of it as fits and an ellipsis."""
    if width(text, size) <= width_max:
        return text
    return f"{next(_pieces(text, size, width_max - width('…', size)))}…"


def _pieces(word: str, size: int, width_max: int) -> Iterator[str]:
    piece = ""
    for letter in word:
        if piece and width(piece + letter, size) > width_max:
            yield piece
            piece = ""
        piece += letter
    yield piece


def _font_of(letter: str, far_eastern: str) -> str:
    return far_eastern if _within(letter, (*_HAN, *_KANA, *_HANGUL)) else LETTERS


def _far_eastern(text: str) -> str:
    """Han letters are shared: the syllables beside them say whose they are."""
    if any(_within(letter, _KANA) for letter in text):
        return JAPANESE
    return KOREAN if any(_within(letter, _HANGUL) for letter in text) else CHINESE


def _within(letter: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(letter) <= last for first, last in ranges)


def _thousandths(run: Run) -> int:
    """Of a size of one point. The fonts' own widths are whole thousandths of it."""
    _registered()
    return int(pdfmetrics.stringWidth(run.text, run.font, 1000))


@cache
def _registered() -> None:
    source = files("fontpkg_noto_sans").joinpath("files", "NotoSans[wdth,wght].ttf")
    with as_file(source) as path:
        pdfmetrics.registerFont(TTFont(LETTERS, str(path)))
    for name in (JAPANESE, KOREAN, CHINESE):
        pdfmetrics.registerFont(UnicodeCIDFont(name))
