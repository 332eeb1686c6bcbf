"""A user's own cases: one row per lesion, which says in which scan it is and where.

docs/dataset.md is the contract of the columns. What is wrong with the table as a whole is an error;
what is wrong with one row leaves out that row and says why.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from radreason.data.table import MISSING, NUMBER, Table
from radreason.errors import InputError, unknown
from radreason.input_files import write_text

LPS, RAS, VOXEL = "LPS mm", "RAS mm", "voxel"
FRAMES = (LPS, RAS, VOXEL)
"""What a position may be given in; voxels are column, row and slice, counted from zero."""

COLUMNS = ("case", "patient", "image", "series_uid", "x", "y", "z", "position", "mask", "mask_part")
"""What the columns of a table of cases are called; others are grades, or left out."""

RADIOGRAPH_COLUMNS = ("case", "patient", "image", "black", "white")
"""The same where a case is a whole radiograph; the last two are needed only if its file does not say."""

_WHAT = "a table of cases, CSV or Parquet"

EXAMPLE = """\
case,patient,image,series_uid,x,y,z,position,mask,mask_part
nodule-1,patient-1,scans/ct1.nii.gz,,-61.5,38.2,-120.0,LPS mm,,
nodule-2,patient-1,scans/ct1.nii.gz,,210,305,41,voxel,,
nodule-3,patient-2,dicom/ct2,,,,,,masks/nodule-3.nii.gz,
nodule-4,patient-3,,1.2.840.113619.2.55.3.1,,,,,masks/ct3-seg.dcm,1
nodule-5,patient-3,,1.2.840.113619.2.55.3.1,,,,,masks/ct3-rtstruct.dcm,GTV 2
"""

EXAMPLE_READINGS = """\
case,reader,margin,spiculation,malignancy
nodule-1,A,4,2,2
nodule-1,B,5,2,3
nodule-2,A,2,4,5
nodule-3,A,3,,4
nodule-3,B,3,1,4
nodule-4,B,1,5,5
nodule-5,A,5,1,1
"""


@dataclass(frozen=True)
class Row:
    """One lesion of a table: in which scan, and where; ``cells`` is what else was asked for.

    ``scan`` names the scan by its series UID; one without gets a pseudonym made of the name of its
    file, which may be the patient's.
    """

    line: int
    case: str
    patient: str
    scan: str
    image: Path | None
    series_uid: str | None
    position: tuple[float, float, float] | None
    frame: str | None
    mask: Path | None
    mask_part: str | None
    cells: Mapping[str, str]


@dataclass(frozen=True)
class CaseTable:
    """The rows that say enough, those that do not with the reason, and what was left alone."""

    rows: tuple[Row, ...]
    refused: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def read_cases(
    path: Path | str, keep: Collection[str] = (), grades: Collection[str] = (), whole: bool = False
) -> CaseTable:
    """Read a table of cases; paths in it start from its own folder.

    ``whole``: cases are whole pictures, which have a file each and no place in it. ``keep`` are other
    columns to keep the cells of, ``grades`` such that need not be there. What nobody asked for is left
    out, for it might say who a patient is.
    """
    table = Table.read(path, _WHAT)
    _check_header(table, keep, whole)
    known = RADIOGRAPH_COLUMNS if whole else COLUMNS
    keep = [*keep, *(name for name in grades if name in table.header)]
    rows: list[Row] = []
    refused: list[tuple[str, str]] = []
    lines: dict[str, int] = {}
    for line, record in table.records():
        cells = {name: "" if cell in MISSING else cell for name, cell in record.items()}
        if whole:
            cells = {name: cells.get(name, "") for name in (*known, *keep)}
        case = cells["case"] or f"line {line}"
        try:
            if case in lines:
                raise _RowError(f"the same case as in line {lines[case]}")
            rows.append(_row(line, cells, table.path.parent, keep, whole))
            lines[case] = line
        except _RowError as refusal:
            refused.append((case, f"line {line}: {refusal}"))
    if not rows and not refused:
        raise InputError(found=f"{table.path}: a header and no rows", expected="one row per case")
    left_out = [name for name in table.header if name not in known and name not in keep]
    notes = [f"columns left out: {', '.join(left_out)}"] if left_out else []
    return CaseTable(tuple(rows), tuple(refused), tuple(notes))


def write_example(path: Path) -> tuple[Path, Path]:
    """Write a table of cases and a table of readings to start from."""
    readings = path.with_name(f"{path.stem}-readings.csv")
    for file in (path, readings):
        if file.exists():
            raise InputError(found=f"{file} is there already", expected="a new file", hint="another name")
    write_text(path, EXAMPLE)
    write_text(readings, EXAMPLE_READINGS)
    return path, readings


class _RowError(Exception):
    """Why one row cannot be used."""


def _check_header(table: Table, keep: Collection[str], whole: bool) -> None:
    for name in ("case", "patient", *(["image"] if whole else []), *keep):
        if name not in table.header:
            raise unknown(f"column in {table.path}:", name, table.header)
    if whole:
        return
    if not {"image", "series_uid"} & set(table.header):
        raise InputError(
            found=f"{table.path}: no column says which scan a case is in",
            expected="image, series_uid or both",
            hint="radreason prepare ct --example cases.csv",
        )
    position = [name for name in ("x", "y", "z", "position") if name in table.header]
    if "mask" not in table.header and len(position) < 4:
        raise InputError(
            found=f"{table.path}: no columns say where in the scan a case is",
            expected="x, y, z and position, or mask",
            hint="radreason prepare ct --example cases.csv",
        )


def _row(line: int, cells: Mapping[str, str], folder: Path, keep: Collection[str], whole: bool) -> Row:
    def cell(name: str) -> str | None:
        return cells.get(name) or None

    if cell("case") is None:
        raise _RowError("no case")
    if cell("patient") is None:
        raise _RowError("no patient: folds are made by patient")
    if cell("image") is None and cell("series_uid") is None:
        raise _RowError("no image" if whole else "neither image nor series_uid")
    axes = [cell(name) for name in "xyz"]
    position, frame = None, None
    if any(axes) or cell("position"):
        position, frame = _position(axes), cell("position")
        if frame not in FRAMES:
            raise _RowError(
                f"position is {repr(frame[:20]) if frame else 'empty'}, not one of {', '.join(FRAMES)}"
            )
    if position is None and cell("mask") is None and not whole:
        raise _RowError("neither a position nor a mask")
    if cell("mask_part") and cell("mask") is None:
        raise _RowError("mask_part without a mask")
    image, mask = cell("image"), cell("mask")
    return Row(
        line,
        cells["case"],
        cells["patient"],
        cell("series_uid") or f"image-{hashlib.sha256(str(image).encode()).hexdigest()[:12]}",
        folder / image if image else None,
        cell("series_uid"),
        position,
        frame,
        folder / mask if mask else None,
        cell("mask_part"),
        {name: cells[name] for name in keep},
    )


def _position(axes: Sequence[str | None]) -> tuple[float, float, float]:
    numbers = []
    for name, text in zip("xyz", axes, strict=True):
        if text is None:
            raise _RowError(f"no {name}")
        if not NUMBER.fullmatch(text) or not math.isfinite(float(text)):
            raise _RowError(f"{name} is {text[:20]!r}, not a number")
        numbers.append(float(text))
    return numbers[0], numbers[1], numbers[2]
