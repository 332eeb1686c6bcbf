"""Write docs/results.md from its template and results/; with --check only say whether it is up to date.

The template is prose. What it says in double braces is filled in from what `radreason compare --keep` kept:

    {{tables ct: pooled against_plain}}         tables of results/ct, by their keys
    {{value ct pooled hybrid@25 AUC}}           one cell: table, row, column
    {{plot ct: ROC}}                            a plot, written to docs/img/results-ct-roc.svg
    {{page ct-correction/correction.md}}        a page that `radreason correct` wrote, without its title

Where results/ct is not there, the page says that it was not run.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

from radreason.compare.comparison import Comparison, compare
from radreason.compare.kept import is_kept, kept_baselines, read_kept
from radreason.compare.table import Figure
from radreason.errors import InputError, unknown
from radreason.report.comparison_plots import plots
from radreason.report.table_text import markdown

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
PAGE, TEMPLATE = DOCS / "results.md", DOCS / "results.template.md"
HEAD = "<!-- Made by `make tables` from docs/results.template.md and results/; do not edit. -->\n\n"
NOT_RUN = "*Not run yet.*"


def page(template: str, results: Path) -> str:
    """Fill a template in."""
    return HEAD + re.sub(r"\{\{(.*?)\}\}", lambda found: _fill(found[1].strip(), results), template)


def drawings(template: str, results: Path) -> dict[str, str]:
    """Give the plots that a template asks for, by the names of their files."""
    asked = re.findall(r"\{\{plot (\S+): (.+?)\}\}", template)
    return {
        _drawing(name, title): plots(_compared(results / name))[title] + "\n"
        for name, title in asked
        if is_kept(results / name)
    }


def _fill(directive: str, results: Path) -> str:
    kind, _, rest = directive.partition(" ")
    if kind == "tables":
        name, keys = rest.split(":")
        if not is_kept(results / name):
            return NOT_RUN
        return "\n".join(markdown(_compared(results / name)[key]) for key in keys.split()).rstrip()
    if kind == "value":
        name, key, row, column = rest.split(maxsplit=3)
        if not is_kept(results / name):
            return NOT_RUN
        cell = _compared(results / name)[key].cell(row, column)
        return cell.text() if isinstance(cell, Figure) else str(cell)
    if kind == "plot":
        name, title = (part.strip() for part in rest.split(":"))
        if not is_kept(results / name):
            return NOT_RUN
        if title not in plots(_compared(results / name)):
            raise unknown("plot", title, plots(_compared(results / name)))
        return f"![{title}](img/{_drawing(name, title)})"
    if kind == "page":
        kept = results / rest
        if not kept.is_file():
            return NOT_RUN
        return kept.read_text(encoding="utf-8").partition("\n")[2].strip().replace("\n## ", "\n### ")
    raise unknown("directive", kind, ["tables", "value", "plot", "page"])


def _drawing(name: str, title: str) -> str:
    return f"results-{name}-{title.lower().replace(' ', '-')}.svg"


@cache
def _compared(folder: Path) -> Comparison:
    return compare(read_kept(folder), kept_baselines(folder))


if __name__ == "__main__":
    try:
        template = TEMPLATE.read_text(encoding="utf-8")
        text, pictures = page(template, RESULTS), drawings(template, RESULTS)
    except InputError as error:
        sys.exit(f"{TEMPLATE.name}: {error}")
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        for name, picture in pictures.items():
            (DOCS / "img" / name).write_text(picture, encoding="utf-8")
        print(f"wrote docs/{PAGE.name} and {len(pictures)} plots")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        sys.exit("docs/results.md is not what results/ say: run 'make tables'")
