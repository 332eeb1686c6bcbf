"""The table of malignancy levels in the terminal: one row per rule, the paper's on top."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from radreason.data.malignancy_table import PAPER, MalignancyTable, Row


def malignancy_text(found: MalignancyTable) -> RenderableType:
    """Rules and counts, what they were counted from, and the notes."""
    table = Table(box=SIMPLE_HEAD, title=_title(found), title_justify="left", title_style="")
    table.add_column("rule")
    for heading in ("1", "2", "3", "4", "5", "benign", "uncertain", "malignant"):
        table.add_column(heading, justify="right")
    table.add_row(*_cells(PAPER), end_section=True)
    for row in found.rows:
        table.add_row(*_cells(row))
    counted = ", ".join(f"{count:,} {what}" for what, count in found.totals.items())
    notes = [Text(f"Note: {note}") for note in found.notes]
    return Group(table, Text(f"Counted: {counted}."), *notes)


def _title(found: MalignancyTable) -> str:
    limits = []
    if found.limits.thickest_slice_mm is not None:
        limits.append(f"slices of at most {found.limits.thickest_slice_mm:g} mm")
    if found.limits.fewest_readers > 1:
        limits.append(f"at least {found.limits.fewest_readers} readers")
    return ", ".join(["Nodules by malignancy", *limits])


def _cells(row: Row) -> list[str]:
    grades = [f"{count:,.0f}" if count == round(count) else f"{count:,.1f}" for count in row.grades]
    return [row.rule, *grades, f"{row.benign:,}", f"{row.uncertain:,}", f"{row.malignant:,}"]
