"""A user's own cases as a plan, of scans or of radiographs: rows of one table, readings of another, matched.

What is wrong with one row leaves out that row and says why.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from radreason.data.case import Case
from radreason.data.case_table import CaseTable, Row
from radreason.data.consensus import Consensus
from radreason.data.grouping import Nodule
from radreason.data.lesion import Lesion
from radreason.data.place import Place
from radreason.data.prepare import Job, Listed, Plan
from radreason.data.reading import NoduleReading, Readings, Scan
from radreason.data.scan_files import ScanFiles
from radreason.data.table import MAX_BYTES
from radreason.errors import InputError
from radreason.input_files import read_bytes
from radreason.schema import Schema, Variable


class UnmatchedError(Exception):
    """Why a row cannot be matched with an image or with readings."""


def matched(
    kind: str,
    tables: Sequence[Path],
    table: CaseTable,
    read: Readings,
    graded: Schema,
    consensus: Consensus,
    *,
    files_of: Callable[[Row], tuple[str, ScanFiles]],
    place_of: Callable[[Row], Place | None],
    odd: Sequence[tuple[str, str]] = (),
    keep: Sequence[str] = (),
) -> Plan:
    """Match cases with their images and with what was read of them; no image is read yet.

    ``tables`` are the files of cases and, if they are in one of their own, of readings; ``odd`` are rows
    whose grades make no sense.
    """
    said: dict[str, list[NoduleReading]] = defaultdict(list)
    for reading in read.nodules:
        said[reading.lesion or reading.nodule].append(reading)
    listed = {row.case for row in table.rows} | {name for name, _ in table.refused}
    wrong = {name for name, _ in odd}
    refused = [
        *table.refused,
        *odd,
        *((name, "has readings, but no row in the table of cases") for name in said if name not in listed),
    ]
    excluded: list[tuple[str, str]] = []
    scans: dict[tuple[str, ScanFiles], list[Lesion]] = defaultdict(list)
    first_row: dict[str | ScanFiles, Row] = {}
    for row in table.rows:
        if row.case in wrong:
            continue
        try:
            name, files = files_of(row)
            _refuse_two_patients(row, [first_row.setdefault(key, row) for key in (name, files)])
            case = _case(row, name, said.get(row.case, []), graded, consensus, keep)
        except UnmatchedError as reason:
            refused.append((row.case, f"line {row.line}: {reason}"))
            continue
        if isinstance(case, str):
            excluded.append((row.case, case))
            continue
        scans[name, files].append(Lesion(case, place_of(row)))
    settings: dict[str, Any] = {
        "consensus": consensus.to_dict(),
        "cases_sha256": _digest(tables[0]),
        "readings_sha256": _digest(tables[1]) if len(tables) > 1 else None,
    }
    return Plan(
        kind,
        " and ".join(path.name for path in tables),
        consensus.schema(graded),
        settings,
        tuple(_jobs(scans)),
        tuple(excluded),
        tuple(refused),
        (*table.notes, *read.notes),
    )


def own_grades(
    table: CaseTable, schema: Schema, grade: Callable[[str | None, Variable], str | None] | None = None
) -> tuple[Readings, list[tuple[str, str]]]:
    """Take the grades in the rows of the cases as what one reader said; also name rows with odd grades.

    ``grade`` says which state a cell means.
    """
    nodules, odd = [], []
    for row in table.rows:
        try:
            grades = {
                variable.name: (grade or _grade)(row.cells.get(variable.name) or None, variable)
                for variable in schema
            }
        except InputError as error:
            odd.append((row.case, f"line {row.line}: {error.found}"))
            continue
        nodules.append(NoduleReading(row.scan, None, row.case, grades, lesion=row.case))
    return Readings(schema, {}, tuple(nodules)), odd


def _grade(cell: str | None, variable: Variable) -> str | None:
    if cell is None or cell in variable.states:
        return cell
    whole = cell.removesuffix(".0")  # as a column of whole numbers with gaps is often saved
    return variable.states[variable.index(whole if whole in variable.states else cell)]


def _jobs(scans: Mapping[tuple[str, ScanFiles], Sequence[Lesion]]) -> Iterator[Job]:
    """Make a job of every image, for a series may have been cut into several."""
    images = Counter[str]()
    for (name, files), lesions in scans.items():
        images[name] += 1
        number = f", image {images[name]}" if images[name] > 1 else ""
        yield Job(f"{name}{number}", files, Listed(tuple(lesions)))


def _refuse_two_patients(row: Row, others: Sequence[Row]) -> None:
    """Refuse a scan that is said to be of two people: they might be trained on and tested on."""
    for other in others:
        if other.patient != row.patient:
            raise UnmatchedError(f"the scan is that of another patient in line {other.line}")


def _case(
    row: Row,
    scan: str,
    readings: Sequence[NoduleReading],
    graded: Schema,
    consensus: Consensus,
    keep: Sequence[str],
) -> Case | str:
    """Make a case of what was read of it, or say why the settings leave it out."""
    if not readings:
        raise UnmatchedError("no readings")
    nodule = Nodule(Scan(scan, row.patient), 1, tuple(readings))
    case = consensus.case(nodule, graded)
    if not isinstance(case, Case):
        return case.reason
    kept = {name: row.cells[name] or None for name in keep}
    return replace(case, id=row.case, patient=row.patient, extra={**case.extra, **kept})


def _digest(path: Path) -> str:
    return hashlib.sha256(read_bytes(path, MAX_BYTES, "a table, CSV or Parquet")).hexdigest()
