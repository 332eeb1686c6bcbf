"""A user's own readings: a table with one row per reader and lesion, and a column per attribute.

The lesion is named by the user, so that nobody has to guess which readings belong together.
"""

from __future__ import annotations

from pathlib import Path

from radreason.data.reading import NoduleReading, Readings, Scan
from radreason.data.state_table import read_states
from radreason.data.table import MISSING, Table
from radreason.errors import InputError, unknown
from radreason.schema import Schema

CASE, READER, SERIES = "case", "reader", "series_uid"
"""What the columns that are no attributes are called; the last two may be left out."""

_WHAT = "a table of readings, CSV or Parquet"


def read_reading_table(path: Path | str, schema: Schema | None = None) -> Readings:
    """Read one reading per row; a blank is a grade that was not given.

    With a schema, its variables are the attributes, and a state that it does not know is an error.
    Without one, every other column is an attribute, and its states are what it holds.
    """
    table = Table.read(path, _WHAT)
    if CASE not in table.header:
        raise unknown(f"column in {table.path}:", CASE, table.header)
    attributes = [name for name in table.header if name not in (CASE, READER, SERIES)]
    graded = read_states(table.path, schema, None if schema else attributes)
    notes = [note for note in graded.notes if not note.startswith("columns left out")]
    if ignored := [name for name in attributes if name not in graded.schema]:
        notes.insert(0, f"columns left out: {', '.join(ignored)}")

    said = [[(*v.states, None)[code] for code in graded.columns[v.name]] for v in graded.schema]
    nodules: list[NoduleReading] = []
    lines: dict[tuple[str, str], int] = {}
    series_of: dict[str, str] = {}
    for (line, row), *grades in zip(table.records(), *said, strict=True):
        case, reader, series = (_cell(row, name) for name in (CASE, READER, SERIES))
        where = f"{table.path}: line {line}"
        if not case:
            raise InputError(found=f"{where}: no {CASE}", expected="the name of a lesion in every row")
        if reader and lines.setdefault((case, reader), line) != line:
            raise InputError(
                found=f"{where}: reader {reader[:40]!r} reads case {case[:40]!r} again, as in line "
                f"{lines[case, reader]}",
                expected="one row per reader and lesion",
            )
        if series_of.setdefault(case, series) != series:
            raise InputError(
                found=f"{where}: case {case[:40]!r} is in series {series[:70]!r}, and above in another",
                expected="one series for all readings of a lesion",
            )
        states = dict(zip(graded.schema.names, grades, strict=True))
        nodules.append(NoduleReading(series, reader or None, case, states, lesion=case))

    empty = sum(not any(nodule.grades.values()) for nodule in nodules)
    if empty:
        notes.append(f"{empty:,} of {len(nodules):,} readings without any grade")
    scans = {series: Scan(series) for series in series_of.values() if series}
    counts = {"series": len(scans), "cases": len(series_of), "readings": len(nodules), "outlines": 0}
    return Readings(graded.schema, scans, tuple(nodules), counts, tuple(notes))


def _cell(row: dict[str, str], name: str) -> str:
    cell = row.get(name, "")
    return "" if cell in MISSING else cell
