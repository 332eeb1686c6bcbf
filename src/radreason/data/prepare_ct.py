"""A user's own cases: what a table of cases and a table of readings ask for, as a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from radreason.data.case_table import Row, read_cases
from radreason.data.consensus import Consensus
from radreason.data.dicom_index import SeriesIndex, find_series
from radreason.data.image_files import is_image_file
from radreason.data.matching import UnmatchedError, matched, own_grades
from radreason.data.place import MaskFile, Position
from radreason.data.prepare import Plan
from radreason.data.reading_table import read_reading_table
from radreason.data.scan_files import ImageFile, ScanFiles, SeriesFiles
from radreason.errors import InputError
from radreason.schema import Schema

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
        read, odd = own_grades(table, schema)
    else:
        raise InputError(
            found="no readings and no schema",
            expected="a table of readings, or a schema that says which columns of the cases are grades",
            hint="--readings or --schema",
        )
    graded = Schema(read.schema.variables, disease or read.schema.disease)
    consensus = consensus or Consensus(size=any(row.mask for row in table.rows))
    return matched(
        KIND,
        [cases, *([readings] if readings else [])],
        table,
        read,
        graded,
        consensus,
        files_of=scan_finder(dicom),
        place_of=place_of,
        odd=odd,
        keep=keep,
    )


def place_of(row: Row) -> MaskFile | Position:
    """Take the mask where there is one; a position beside it is not needed."""
    if row.mask is not None:
        return MaskFile(row.mask, row.mask_part)
    assert row.position is not None, "a row has a mask or a position"
    return Position(row.position, row.frame or "")


def scan_finder(dicom: Path | None) -> Callable[[Row], tuple[str, ScanFiles]]:
    """Give a function that finds name and files of a row's scan; every folder is looked through once."""
    index_of = cache(find_series)

    def find(row: Row) -> tuple[str, ScanFiles]:
        if row.image is None:
            if dicom is None:
                raise UnmatchedError("a series UID without an image, and no folder of DICOM files (--dicom)")
            return _series(index_of(dicom), row.series_uid)
        if row.image.is_dir():
            return _series(index_of(row.image), row.series_uid)
        if not is_image_file(row.image):
            raise UnmatchedError("the image is neither a folder of DICOM files nor NIfTI, MetaImage or NRRD")
        if not row.image.is_file():
            raise UnmatchedError("no such image")
        return row.scan, ImageFile(row.image)

    return find


def _series(index: SeriesIndex, uid: str | None) -> tuple[str, ScanFiles]:
    if uid is None and len(index.ct) != 1:
        raise UnmatchedError(f"{len(index.ct)} series of CT slices in the folder, and no series UID")
    series = index.ct[0] if uid is None else index.series.get(uid)
    if series is None:
        raise UnmatchedError("no such series in the folder")
    return series.uid, SeriesFiles(series.slices, series.others, series.uid, series.modality)
