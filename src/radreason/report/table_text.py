"""Tables of a comparison as Markdown, CSV, LaTeX and HTML: the same cells, four spellings.

What the paper published is in italics, and CSV marks it in a column of its own. CSV holds numbers as they
are, not rounded for the eye, with a column for each spread.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from radreason.compare.table import Cell, Figure, Row, Table
from radreason.report.web_page import escape

PUBLISHED = "as published, other data"

SHORT = 24
"""Letters that stay on one line of a page."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
    "≥": r"$\geq$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def markdown(table: Table, heading: str = "###") -> str:
    """Write a table with its title above and its notes below."""
    lines = [
        "| " + " | ".join(_bar(column) for column in table.columns) + " |",
        "|" + "|".join(" ---: " if right else " --- " for right in _right(table)) + "|",
    ]
    for row in table.rows:
        cells = [_bar(_shown(cell)) for cell in row.cells]
        if row.as_published:
            cells = [f"*{cell}*" if cell not in ("", "-") else cell for cell in cells]
            cells[0] = f"{cells[0]} ({PUBLISHED})"
        lines.append("| " + " | ".join(cells) + " |")
    notes = "".join(f"\n- {_bar(note)}" for note in table.notes)
    title = f"{heading} {table.title}\n\n" if heading else ""
    return title + "\n".join(lines) + "\n" + (f"{notes}\n" if notes else "")


def as_csv(table: Table) -> str:
    """Write the numbers of a table, each spread in a column of its own."""
    spreads = [
        [
            name
            for name in ("sd", "low", "high")
            if any(isinstance(c, Figure) and getattr(c, name) is not None for c in column)
        ]
        for column in zip(*(row.cells for row in table.rows), strict=True)
    ] or [[] for _ in table.columns]
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    head = [
        name
        for column, extra in zip(table.columns, spreads, strict=True)
        for name in [column, *(f"{column} {e}" for e in extra)]
    ]
    write([*head, "published"])
    for row in table.rows:
        cells: list[str] = []
        for cell, extra in zip(row.cells, spreads, strict=True):
            if isinstance(cell, Figure):
                cells += [_number(cell.value), *(_number(getattr(cell, name)) for name in extra)]
            else:
                cells += [str(cell), *[""] * len(extra)]
        write([*cells, "yes" if row.as_published else "no"])
    return text.getvalue()


def latex(table: Table) -> str:
    """Write a table with booktabs, as the paper's are."""
    right = _right(table)
    body = []
    for row in table.rows:
        cells = [_tex(_shown(cell)) for cell in row.cells]
        if row.as_published:
            cells = [rf"\textit{{{cell}}}" if cell else cell for cell in cells]
            cells[0] += r"$^{\dagger}$"
        body.append(" & ".join(cells) + r" \\")
    notes = list(table.notes)
    if any(row.as_published for row in table.rows):
        notes.append(f"†: {PUBLISHED}.")
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table*}[t]",
            rf"\caption{{{_tex(table.title)}}}",
            rf"\label{{tab:{table.key}}}",
            r"\centering",
            rf"\begin{{tabular}}{{{''.join('r' if r else 'l' for r in right)}}}",
            r"\toprule",
            " & ".join(_tex(column) for column in table.columns) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\\ {{\footnotesize {_tex(note)}}}".replace("†", r"$^{\dagger}$") for note in notes),
            r"\end{table*}",
            "",
        ]
    )


def html(table: Table) -> str:
    """Write a table for a page, with its notes."""
    right = _right(table)

    def line(tag: str, cells: Sequence[str]) -> str:
        marked = []
        for cell, is_number in zip(cells, right, strict=True):
            kind = "number" if is_number else "short" if len(cell) <= SHORT else ""
            marked.append(f"<{tag}{f' class={kind}' if kind else ''}>{escape(cell)}</{tag}>")
        return "".join(marked)

    rows = []
    for row in table.rows:
        cells = [_shown(cell) for cell in row.cells]
        mark = f' class=published title="{PUBLISHED}"' if row.as_published else ""
        cells[0] += f" ({PUBLISHED})" if row.as_published else ""
        rows.append(f"<tr{mark}>{line('td', cells)}</tr>")
    notes = "".join(f"<li>{words(note)}</li>" for note in table.notes)
    return (
        f'<section id="{escape(table.key)}"><h2>{escape(table.title)}</h2>\n<div class=wide><table>\n'
        f"<thead><tr>{line('th', table.columns)}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + f"\n</tbody></table></div>\n<ul class=notes>{notes}</ul></section>\n"
    )


def words(note: str) -> str:
    """Write a note for a page: what stands between backticks is code.

    >>> words("`--data` tells & more")
    '<code>--data</code> tells &amp; more'
    """
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(note))


def terminal(table: Table) -> tuple[tuple[str, ...], list[bool], list[tuple[Row, list[str]]]]:
    """Give the columns, which of them are numbers, and the rows with their text."""
    rows = [(row, [_shown(cell) for cell in row.cells]) for row in table.rows]
    for row, cells in rows:
        cells[0] += " (published)" if row.as_published else ""
    return table.columns, _right(table), rows


def _shown(cell: Cell) -> str:
    return cell.text() if isinstance(cell, Figure) else str(cell)


def _right(table: Table) -> list[bool]:
    """Say which columns are of numbers: nothing in them but figures, counts and gaps."""
    columns = (
        zip(*(row.cells for row in table.rows), strict=True) if table.rows else [() for _ in table.columns]
    )
    return [any(not isinstance(c, str) for c in column) for column in columns]


def _bar(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def _tex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _number(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.6g}"
