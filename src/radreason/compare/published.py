"""The numbers that the paper printed, as it printed them: other data, other folds, other machines.

`published.csv` holds every row of its tables of results, by the label that the table has in the paper's
source. They stand beside ours for orientation; nothing is tested against them. It is the paper's own
oddity that T1 repeats the numbers of row E, and T2 all but one of those of row F.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from radreason.errors import unknown

FIGURES = ("accuracy", "sensitivity", "specificity", "auc", "precision", "f_score")


@dataclass(frozen=True)
class Published:
    """A row of a table: means and standard deviations as shares; what the paper does not give is left out."""

    table: str
    row: str
    method: str
    benign: int | None
    malignant: int | None
    cases: int | None
    figures: dict[str, tuple[float, float | None]]

    @property
    def name(self) -> str:
        """How a run refers to it: tab:lidcsota/O2."""
        return f"{self.table}/{self.row}"


@cache
def published() -> dict[str, Published]:
    """Give all rows by their names."""
    text = (files("radreason.compare") / "published.csv").read_text(encoding="utf-8")
    rows = [_row(entry) for entry in csv.DictReader(io.StringIO(text))]
    return {row.name: row for row in rows}


def look_up(name: str) -> Published:
    """Find a row by its name."""
    if name not in published():
        raise unknown("row of the paper's tables", name, published())
    return published()[name]


def table(label: str) -> list[Published]:
    """Give the rows of one table."""
    return [row for row in published().values() if row.table == label]


def _row(entry: dict[str, str]) -> Published:
    figures = {
        name: (_share(entry[name]), _share(entry[f"{name}_sd"]) if entry[f"{name}_sd"] else None)
        for name in FIGURES
        if entry[name]
    }
    benign, malignant, cases = (
        int(entry[key]) if entry[key] else None for key in ("benign", "malignant", "cases")
    )
    return Published(entry["table"], entry["row"], entry["method"], benign, malignant, cases, figures)


def _share(percent: str) -> float:
    return round(float(percent) / 100, 6)
