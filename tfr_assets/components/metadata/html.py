"""A page of HTML from headings, markdown and figures: self-contained, without scripts, light and dark."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --good: #1a7f37; --bad: #c62828; --warn: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --good: #4ac26b; --bad: #ff7b72; --warn: #d4a72c; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { margin: 0 0 .25rem; font-size: 1.8rem; }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.2rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h3 { margin: 1.5rem 0 .5rem; font-size: 1rem; }
nav a { margin-right: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; }
td.number { text-align: right; }
td.path, code, pre { font-family: ui-monospace, monospace; font-size: .86em; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; white-space: pre-wrap; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 4px; padding: 4px; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
"""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_NUMBER = re.compile(r"[\d,.]+( [A-Za-z/]+)?|–")
_STATES = {"passed": "good", "failed": "bad", "missing": "bad", "warning": "warn"}


def page(title: str, about: str, sections: Sequence[tuple[str, str]]) -> str:
    """Returns a whole page.

    Args:
        title: Its heading.
        about: What stands below it, as HTML.
        sections: Heading and HTML of each section.
    """
    places = [f"s{number}" for number in range(len(sections))]
    links = "".join(f'<a href="#{at}">{escape(name)}</a>' for at, (name, _) in zip(places, sections, strict=True))
    body = "\n".join(
        f'<section id="{at}"><h2>{escape(name)}</h2>\n{content}</section>'
        for at, (name, content) in zip(places, sections, strict=True)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{about}\n<nav>{links}</nav>\n{body}\n</body></html>\n"
    )


def text(markdown: str) -> str:
    """Returns markdown as HTML: tables, pictures, lists, code. HTML in it is shown as it is written."""
    return (
        _markdown()
        .render(markdown)
        .replace("<table>", '<div class="scroll"><table>')
        .replace("</table>", "</table></div>")
    )


def paragraph(words: str, state: str = "") -> str:
    """Returns a paragraph of plain text; `state` is one of passed, failed, warning."""
    return f'<p class="{_STATES[state]}">{escape(words)}</p>' if state else f"<p>{escape(words)}</p>"


def subsection(name: str, content: str) -> str:
    """Returns HTML under a heading."""
    return f"<h3>{escape(name)}</h3>\n{content}"


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Returns names and values as a table of two columns."""
    rows = "".join(
        f'<tr><th>{escape(name)}</th><td class="path">{escape(_shown(value))}</td></tr>' for name, value in pairs
    )
    return f'<div class="scroll"><table>{rows}</table></div>'


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a table; numbers stand at the right, and words that name a state have its colour."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{lines}</table></div>'


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # definitions are loaded without it

    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _cell(value: object) -> str:
    shown = _shown(value)
    kind = _STATES.get(shown) or ("number" if _NUMBER.fullmatch(shown) else "")
    return f'<td class="{kind}">{escape(shown)}</td>' if kind else f"<td>{escape(shown)}</td>"


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
