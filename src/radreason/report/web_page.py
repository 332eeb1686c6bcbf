"""The frame of every page: one stylesheet, one way to escape; no script, and nothing from elsewhere."""

from __future__ import annotations

from html import escape

__all__ = ["document", "escape"]

STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --line: #d5dae0; --quiet: #5a6470; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .87rem; }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top; }
th, td { border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--ink); }
th.number, td.number { text-align: right; }
td.number, td.short { white-space: nowrap; }
tr.published { font-style: italic; color: var(--quiet); }
.notes, figcaption { color: var(--quiet); font-size: .85rem; }
figure { margin: 1rem 0; } figure svg, figure img { max-width: 100%; height: auto; }
nav a { margin-right: 1rem; white-space: nowrap; }
.warning { border-left: 4px solid #D55E00; padding-left: 1.8rem; }
@media print { body { margin: 0; } section { break-inside: avoid; } }
"""


def document(title: str, body: str, style: str = "") -> str:
    """Frame a body; ``style`` is what this kind of page has beside the common stylesheet."""
    return (
        "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head><body>\n{body}</body></html>\n"
    )
