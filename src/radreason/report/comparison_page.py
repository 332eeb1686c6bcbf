"""A comparison as one page that needs nothing else: plots and tables inline, no script, no network."""

from __future__ import annotations

from html import escape

from radreason.compare.comparison import Comparison
from radreason.report.comparison_plots import MOST, plots
from radreason.report.table_text import html, words

_ABOUT = {
    "ROC": "Pooled beliefs: averaged over repeats, each case by models that did not train on it.",
    "Reliability": "Grey: where a calibrated model's bins would lie in 95 of 100 such sets of cases.",
    "Training size": "Bands: 95 % intervals, resampling patients.",
}

_STYLE = """
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
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
nav a { margin-right: 1rem; white-space: nowrap; }
.warning { border-left: 4px solid #D55E00; padding-left: 1.8rem; }
@media print { body { margin: 0; } section { break-inside: avoid; } }
"""


def page(comparison: Comparison, title: str = "Comparison of methods") -> str:
    """Write the page."""
    links = "".join(f'<a href="#{escape(t.key)}">{escape(t.title)}</a> ' for t in comparison.tables)
    whole = [m for m in comparison.methods if m.fraction == comparison.methods[0].fraction]
    left_out = f" The first {MOST} methods are drawn." if len(whole) > MOST else ""
    drawn = "".join(
        f"<figure id={escape(name.split()[0].lower())}><h2>{escape(name)}</h2>\n{svg}\n"
        f"<figcaption>{escape(_ABOUT[name] + left_out)}</figcaption></figure>\n"
        for name, svg in plots(comparison).items()
    )
    said = "".join(f"<li>{words(note)}</li>" for note in comparison.notes)
    return (
        "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n<ul class=warning>{said}<li>Not a medical device: no figure here says "
        f"how it would do on other patients.</li></ul>\n<nav>{links}</nav>\n{drawn}"
        + "".join(html(table) for table in comparison.tables)
        + "</body></html>\n"
    )
