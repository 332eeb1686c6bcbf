"""A table before it is text: cells that know their spread, notes under it, and a key to find it by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

from radreason.errors import unknown
from radreason.evaluate.intervals import Interval


@dataclass(frozen=True)
class Figure:
    """A number with what is known of its uncertainty: a standard deviation, or an interval.

    ``digits`` are shown, and of what is below ``least`` only that; ``percent`` shows a share as the paper
    does. A number that does not exist is nan.
    """

    value: float
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    digits: int = 3
    percent: bool = False
    signed: bool = False
    least: float = 0.0

    @classmethod
    def of(cls, interval: Interval, digits: int = 3, signed: bool = False) -> Figure:
        """Take over a figure with its interval."""
        return cls(interval.value, None, interval.low, interval.high, digits, False, signed)

    def text(
        self,
    ) -> str:
        """Write it: 0.912, +0.012 [+0.001, +0.023], 91.20±0.31; a dash where there is none."""
        if self.value != self.value:
            return "-"
        if abs(self.value) < self.least:
            return f"<{self.least:g}"
        shown = self._one(self.value, self.signed)
        if self.sd is not None and self.sd == self.sd:
            shown += f"±{self._one(self.sd)}"
        if self.low is not None and self.high is not None and self.low == self.low:
            shown += f" [{self._one(self.low, self.signed)}, {self._one(self.high, self.signed)}]"
        return shown

    def _one(self, value: float, signed: bool = False) -> str:
        scaled = round(100 * value if self.percent else value, self.digits) + 0.0
        return f"{scaled:{'+' if signed else ''}.{self.digits}f}"


Cell = str | int | Figure


def mean_and_sd(values: Sequence[float], digits: int = 2, percent: bool = True) -> Figure:
    """Mean and standard deviation over models, as the paper reports; what cannot be computed is left out."""
    known = np.array([value for value in values if value == value])
    if not len(known):
        return Figure(nan, digits=digits, percent=percent)
    sd = float(known.std(ddof=1)) if len(known) > 1 else None
    return Figure(float(known.mean()), sd, digits=digits, percent=percent)


@dataclass(frozen=True)
class Row:
    """Cells under the columns; ``as_published`` marks what the paper printed of other data."""

    cells: tuple[Cell, ...]
    as_published: bool = False


@dataclass(frozen=True)
class Table:
    """Columns, rows and what must be said under them; ``label`` is the paper's table of this layout."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    label: str = field(default="")

    def cell(self, method: str, column: str) -> Cell:
        """Find a cell by its row and column; hybrid@25 is the row of hybrid that begins with 25 %."""
        if column not in self.columns:
            raise unknown("column", column, self.columns)
        name, _, share = method.partition("@")
        wanted = f"{share or 100} %"
        for row in self.rows:
            is_share = self.columns[1] != "Training" or str(row.cells[1]).startswith(wanted)
            if row.cells[0] == name and is_share and not row.as_published:
                return row.cells[self.columns.index(column)]
        raise unknown(f"row of {self.key}:", method, [str(row.cells[0]) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; a number that does not exist is None."""
        return {
            "title": self.title,
            "label": self.label,
            "rows": [
                {"as_published": row.as_published}
                | {name: _plain(cell) for name, cell in zip(self.columns, row.cells, strict=True)}
                for row in self.rows
            ],
            "notes": list(self.notes),
        }


def _plain(cell: Cell) -> Any:
    if not isinstance(cell, Figure):
        return cell
    numbers = {"value": cell.value, "sd": cell.sd, "low": cell.low, "high": cell.high}
    known = {name: None if x != x else x for name, x in numbers.items() if x is not None}
    return known
