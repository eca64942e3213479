"""A PDF's sheets of paper: text, rules and a mark across the page. Places are in points from the
lower left corner of an A4 page."""

from collections.abc import Sequence
from io import BytesIO

from reportlab.lib.colors import Color, HexColor
from reportlab.pdfgen.canvas import Canvas

from billing.documents.fonts import runs, width

WIDTH, HEIGHT = 595, 842
LEFT, RIGHT, TOP, BOTTOM = 50, 545, 792, 72
"""Where text may stand; the footer is below."""

INK, GREY, FAINT, PALE = (HexColor(each) for each in (0x1A1A1A, 0x5C5C5C, 0xB8B8B8, 0xEBEBEB))


class Sheet:
    """Pages that are drawn one after the other. The same calls give the same bytes."""

    def __init__(self, *, title: str, author: str) -> None:
        self._content = BytesIO()
        self._canvas = Canvas(
            self._content, pagesize=(WIDTH, HEIGHT), invariant=1, pageCompression=1, lang="en"
        )
        self._canvas.setTitle(title)
        self._canvas.setAuthor(author)
        self._canvas.setCreator("Weir")

    def text(
        self,
        x: int,
        y: int,
        text: str,
        *,
        size: int = 9,
        bold: bool = False,
        shade: Color = INK,
        right: bool = False,
    ) -> None:
        """One line whose base is at `y`, beginning or, where `right`, ending at `x`."""
        left = x - width(text, size) / 1000 if right else x
        drawn = self._canvas.beginText(left, y)
        drawn.setFillColor(shade)
        if bold:
            # No second file of a font is needed: the letters' edges are drawn too.
            drawn.setTextRenderMode(2)
            self._canvas.setStrokeColor(shade)
            self._canvas.setLineWidth(size / 36)
        for run in runs(text):
            drawn.setFont(run.font, size)
            drawn.textOut(run.text)
        if bold:
            drawn.setTextRenderMode(0)
        self._canvas.drawText(drawn)

    def lines(
        self, x: int, y: int, lines: Sequence[str], *, size: int = 9, shade: Color = INK
    ) -> None:
        """Lines below each other, the first at `y`."""
        for index, line in enumerate(lines):
            self.text(x, y - index * leading(size), line, size=size, shade=shade)

    def rule(self, y: int, *, left: int = LEFT, shade: Color = FAINT) -> None:
        """A thin line across to the right margin."""
        self._canvas.setStrokeColor(shade)
        self._canvas.setLineWidth(1 / 2)
        self._canvas.line(left, y, RIGHT, y)

    def band(self, y: int, height: int) -> None:
        """A pale band across, whose lower edge is at `y`."""
        self._canvas.setFillColor(PALE)
        self._canvas.rect(LEFT, y, RIGHT - LEFT, height, stroke=0, fill=1)

    def mark(self, word: str) -> None:
        """A word across the page; what is drawn later is above it."""
        size = 110
        self._canvas.saveState()
        self._canvas.translate(WIDTH / 2, HEIGHT / 2)
        self._canvas.rotate(52)
        self.text(-width(word, size) // 2000, -size // 3, word, size=size, bold=True, shade=PALE)
        self._canvas.restoreState()

    def next_page(self) -> None:
        """Ends a page; each page ends with this."""
        self._canvas.showPage()

    def content(self) -> bytes:
        """The whole PDF."""
        self._canvas.save()
        return self._content.getvalue()


def leading(size: int) -> int:
    """From one line's base to the next one's."""
    return size + size // 3 + 1
