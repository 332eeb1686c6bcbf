"""A comparison as one page that needs nothing else: plots and tables inline, no script, no network."""

from __future__ import annotations

from radreason.compare.comparison import Comparison
from radreason.report.comparison_plots import MOST, plots
from radreason.report.table_text import html, words
from radreason.report.web_page import document, escape

_ABOUT = {
    "ROC": "Pooled beliefs: averaged over repeats, each case by models that did not train on it.",
    "Reliability": "Grey: where a calibrated model's bins would lie in 95 of 100 such sets of cases.",
    "Training size": "Bands: 95 % intervals, resampling patients.",
}


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
    return document(
        title,
        f"<h1>{escape(title)}</h1>\n<ul class=warning>{said}<li>Not a medical device: no figure here says "
        f"how it would do on other patients.</li></ul>\n<nav>{links}</nav>\n{drawn}"
        + "".join(html(table) for table in comparison.tables),
    )
