"""A report as one HTML file that needs nothing else: no script, no font, no address outside."""

from collections.abc import Iterable, Sequence
from html import escape

from backend.loadtest.table import Facts, Table

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 82rem; padding: 0 1rem;
  color: #1b1b1b; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
svg { width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .3rem .6rem .6rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #555; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
.simulated { border: 2px solid #D55E00; padding: .5rem 1rem; font-weight: 600; }
.notices li { margin: .2rem 0; }
"""


def page(
    facts: Facts,
    *,
    simulated: bool | None,
    picture_svg: str | None,
    picture_words: str,
    parameters: Sequence[tuple[str, str]],
    files: Sequence[str],
) -> str:
    """The whole document. `picture_svg` is markup of our own and goes in as it is, all else is
    escaped; `picture_words` says what it shows to who cannot see it, or why there is none. `files`
    lie beside the page."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(facts.heading)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(facts.heading)}</h1>",
    ]
    if simulated:
        parts.append(
            '<p class="simulated">Every figure on this page is simulated: '
            "no GPU was part of this run.</p>"
        )
    if facts.notices:
        notices = "".join(f"<li>{escape(notice)}</li>" for notice in facts.notices)
        parts.append(f'<h2>To be read first</h2><ul class="notices">{notices}</ul>')
    parts.append(_picture(picture_svg, picture_words))
    parts += ["<h2>Figures</h2>", _pairs(facts.lines)]
    parts += [_table(table) for table in facts.tables]
    parts += ["<h2>Parameters</h2>", _pairs(parameters)]
    links = ", ".join(f'<a href="{escape(name)}">{escape(name)}</a>' for name in files)
    parts += [f"<h2>Files</h2><p>{links}</p>", "</body></html>"]
    return "\n".join(parts) + "\n"


def _picture(svg: str | None, words: str) -> str:
    if svg is None:
        return f"<p>No picture: {escape(words)}</p>"
    return f'<figure role="img" aria-label="{escape(words)}">{svg}</figure>'


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f"<dl>{rows}</dl>"


def _table(table: Table) -> str:
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return (
        f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
