"""A user's own cases: what a table of cases and a table of readings ask for, as a plan."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from radreason.data.case import Case
from radreason.data.case_table import CaseTable, Row, read_cases
from radreason.data.consensus import Consensus
from radreason.data.dicom_index import SeriesIndex, find_series
from radreason.data.grouping import Nodule
from radreason.data.image_files import is_image_file
from radreason.data.place import MaskFile, Position
from radreason.data.prepare import Job, Lesion, Listed, Plan
from radreason.data.reading import NoduleReading, Readings, Scan
from radreason.data.reading_table import read_reading_table
from radreason.data.scan_files import ImageFile, ScanFiles, SeriesFiles
from radreason.data.table import MAX_BYTES
from radreason.errors import InputError
from radreason.input_files import read_bytes
from radreason.schema import Schema, Variable

KIND = "ct"


def plan_ct(
    cases: Path,
    readings: Path | None = None,
    *,
    schema: Schema | None = None,
    disease: str | None = None,
    dicom: Path | None = None,
    keep: Sequence[str] = (),
    consensus: Consensus | None = None,
) -> Plan:
    """Read the tables, match them, and find the files of every scan; no voxel is read yet.

    Without readings, the grades are the cells of the case's own row, as one reader's, and the schema
    says which columns are grades.
    """
    table = read_cases(cases, keep, schema.names if schema and readings is None else ())
    odd: list[tuple[str, str]] = []
    if readings is not None:
        read = read_reading_table(readings, schema)
    elif schema is not None:
        read, odd = _own_grades(table, schema)
    else:
        raise InputError(
            found="no readings and no schema",
            expected="a table of readings, or a schema that says which columns of the cases are grades",
            hint="--readings or --schema",
        )
    graded = Schema(read.schema.variables, disease or read.schema.disease)
    consensus = consensus or Consensus(size=any(row.mask for row in table.rows))

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
    files_of = _finder(dicom)
    for row in table.rows:
        if row.case in wrong:
            continue
        try:
            name, files = files_of(row)
            _refuse_two_patients(row, [first_row.setdefault(key, row) for key in (name, files)])
            case = _case(row, name, said.get(row.case, []), graded, consensus, keep)
        except _Unmatched as reason:
            refused.append((row.case, f"line {row.line}: {reason}"))
            continue
        if isinstance(case, str):
            excluded.append((row.case, case))
            continue
        scans[name, files].append(Lesion(case, _place(row)))
    settings = {
        "consensus": consensus.to_dict(),
        "cases_sha256": _digest(cases),
        "readings_sha256": _digest(readings) if readings else None,
    }
    return Plan(
        KIND,
        f"{cases.name}" + (f" and {readings.name}" if readings else ""),
        consensus.schema(graded),
        settings,
        tuple(_jobs(scans)),
        tuple(excluded),
        tuple(refused),
        (*table.notes, *read.notes),
    )


class _Unmatched(Exception):  # noqa: N818
    """Why a row cannot be matched with a scan or with readings."""


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
            raise _Unmatched(f"the scan is that of another patient in line {other.line}")


def _place(row: Row) -> MaskFile | Position:
    """Take the mask where there is one; a position beside it is not needed."""
    if row.mask is not None:
        return MaskFile(row.mask, row.mask_part)
    assert row.position is not None, "a row has a mask or a position"
    return Position(row.position, row.frame or "")


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
        raise _Unmatched("no readings")
    nodule = Nodule(Scan(scan, row.patient), 1, tuple(readings))
    case = consensus.case(nodule, graded)
    if not isinstance(case, Case):
        return case.reason
    kept = {name: row.cells[name] or None for name in keep}
    return replace(case, id=row.case, patient=row.patient, extra={**case.extra, **kept})


def _finder(dicom: Path | None) -> Callable[[Row], tuple[str, ScanFiles]]:
    """Give a function that finds the scan of a row; every folder is looked through once."""
    index_of = cache(find_series)

    def find(row: Row) -> tuple[str, ScanFiles]:
        if row.image is None:
            if dicom is None:
                raise _Unmatched("a series UID without an image, and no folder of DICOM files (--dicom)")
            return _series(index_of(dicom), row.series_uid)
        if row.image.is_dir():
            return _series(index_of(row.image), row.series_uid)
        if not is_image_file(row.image):
            raise _Unmatched("the image is neither a folder of DICOM files nor NIfTI, MetaImage or NRRD")
        if not row.image.is_file():
            raise _Unmatched("no such image")
        return row.scan, ImageFile(row.image)

    return find


def _series(index: SeriesIndex, uid: str | None) -> tuple[str, ScanFiles]:
    if uid is None and len(index.ct) != 1:
        raise _Unmatched(f"{len(index.ct)} series of CT slices in the folder, and no series UID")
    series = index.ct[0] if uid is None else index.series.get(uid)
    if series is None:
        raise _Unmatched("no such series in the folder")
    return series.uid, SeriesFiles(series.slices, series.others, series.uid, series.modality)


def _own_grades(table: CaseTable, schema: Schema) -> tuple[Readings, list[tuple[str, str]]]:
    """Take the grades in the rows of the cases as what one reader said; also name rows with odd grades."""
    nodules, odd = [], []
    for row in table.rows:
        try:
            grades = {variable.name: _grade(row, variable) for variable in schema}
        except InputError as error:
            odd.append((row.case, f"line {row.line}: {error.found}"))
            continue
        nodules.append(NoduleReading(row.scan, None, row.case, grades, lesion=row.case))
    return Readings(schema, {}, tuple(nodules)), odd


def _grade(row: Row, variable: Variable) -> str | None:
    cell = row.cells.get(variable.name) or None
    if cell is None or cell in variable.states:
        return cell
    whole = cell.removesuffix(".0")  # as a column of whole numbers with gaps is often saved
    return variable.states[variable.index(whole if whole in variable.states else cell)]


def _digest(path: Path) -> str:
    return hashlib.sha256(read_bytes(path, MAX_BYTES, "a table, CSV or Parquet")).hexdigest()
