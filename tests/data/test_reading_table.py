"""A user's table of readings, against the table spelled out by hand and by the csv module."""

from __future__ import annotations

import csv
import random

import polars
import pytest

from radreason import InputError
from radreason.data import read_reading_table
from radreason.schema import LIDC, Schema, Variable

COUGH = Schema((Variable("cough", ("none", "dry", "wet")), Variable("flu", ("no", "yes"))), disease="flu")
TEXT = """\
case,reader,cough,flu,remark
a,X,dry,no,
b,X,,yes,tired
a,Y,wet,NA,
c,,,,
"""


def written(folder, text, name="readings.csv"):
    (folder / name).write_text(text)
    return folder / name


def test_rows_become_readings(tmp_path):
    found = read_reading_table(written(tmp_path, TEXT), COUGH)
    assert found.schema is COUGH
    assert [(n.lesion, n.nodule, n.reader, n.scan, dict(n.grades), n.outlines) for n in found.nodules] == [
        ("a", "a", "X", "", {"cough": "dry", "flu": "no"}, ()),
        ("b", "b", "X", "", {"cough": None, "flu": "yes"}, ()),
        ("a", "a", "Y", "", {"cough": "wet", "flu": None}, ()),
        ("c", "c", None, "", {"cough": None, "flu": None}, ()),
    ]
    assert found.scans == {}
    assert found.counts == {"series": 0, "cases": 3, "readings": 4, "outlines": 0}
    assert found.notes == (
        "columns left out: remark",
        "cough: 2 of 4 missing",
        "flu: 2 of 4 missing",
        "1 of 4 readings without any grade",
    )


def test_without_a_schema_the_columns_say_what_there_is(tmp_path):
    text = "grade;series_uid;case;reader;shape\n10;1.2;a;X;round\n2;1.2;a;Y;oval\n ;1.3;b;X;oval\n"
    found = read_reading_table(written(tmp_path, text))
    assert found.schema == Schema(
        (Variable("grade", ("2", "10")), Variable("shape", ("oval", "round"), ordered=False))
    )
    assert [tuple(n.grades.values()) for n in found.nodules] == [
        ("10", "round"),
        ("2", "oval"),
        (None, "oval"),
    ]
    assert {uid: scan.series_uid for uid, scan in found.scans.items()} == {"1.2": "1.2", "1.3": "1.3"}
    assert [n.scan for n in found.nodules] == ["1.2", "1.2", "1.3"]
    assert found.notes == ("grade: 1 of 3 missing",)


def test_what_says_nothing_is_no_name(tmp_path):
    text = "case,reader,series_uid,flu\na,NA,?,no\na,NA,,yes\nb,,null,no\n"
    found = read_reading_table(written(tmp_path, text))
    assert [(n.reader, n.scan) for n in found.nodules] == [(None, "")] * 3
    with pytest.raises(InputError, match="line 2: no case"):
        read_reading_table(written(tmp_path, text.replace("\na,", "\nNA,")))


def test_parquet_and_floats(tmp_path):
    """A column of whole numbers with gaps comes out of a data frame as 1.0, 2.0."""
    table = {"case": ["a", "b", "c"], "flu": ["no", "yes", None], "cough": ["none", "dry", "wet"]}
    polars.DataFrame(table | {"grade": [1.0, None, 3.0]}).write_parquet(tmp_path / "x.parquet")
    found = read_reading_table(tmp_path / "x.parquet")
    assert [n.grades["grade"] for n in found.nodules] == ["1", None, "3"]
    assert [n.reader for n in found.nodules] == [None] * 3


REFUSED = {
    "no case": ("reader,cough,flu\nX,dry,no\n", "unknown column in .*'case'"),
    "blank case": ("case,cough,flu\n,dry,no\n", "line 2: no case"),
    "read twice": (TEXT + "b,X,dry,no,\n", "line 6: reader 'X' reads case 'b' again, as in line 3"),
    "two series": (
        "case,series_uid,cough,flu\na,1,dry,no\na,2,dry,no\n",
        "line 3: case 'a' is in series '2'",
    ),
    "unknown state": ("case,cough,flu\na,dry,no\nb,dri,no\n", "line 3: unknown state of 'cough': 'dri'"),
    "no such column": ("case,cough\na,dry\n", "unknown column in .*'flu'"),
    "no rows": ("case,cough,flu\n", "a header and no rows"),
    "short row": ("case,cough,flu\na,dry\n", "line 2: 2 cells"),
    "empty": ("", "no header"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_with_its_line(tmp_path, case):
    text, complaint = REFUSED[case]
    with pytest.raises(InputError, match=complaint):
        read_reading_table(written(tmp_path, text), COUGH)
    with pytest.raises(InputError, match="no column asked for"):
        read_reading_table(written(tmp_path, "case,reader\na,X\n"))


def test_real_readings(tmp_path, shared_data):
    text = (shared_data / "lidc-voi/readings.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    found = read_reading_table(written(tmp_path, text.replace("nodule,reading,", "case,reader,", 1)), LIDC)
    assert found.counts["readings"] == len(rows) == len(found.nodules)
    assert found.counts["cases"] == 726
    for row, reading in zip(rows, found.nodules, strict=True):
        assert (row["nodule"], row["reading"]) == (reading.lesion, reading.reader)
        assert {name: row[name] for name in LIDC.names} == reading.grades


def test_damaged_tables_are_read_or_refused(tmp_path):
    rng = random.Random(0)
    pieces = [",", "\n", '"', ";", "\t", "", "a", "X", "\0", "é", "\r", " ", "NA", "9" * 30]
    outcomes = {"read": 0, "refused": 0}
    for _ in range(500):
        text = TEXT
        for _ in range(rng.choice([1, 1, 3])):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(pieces) + text[at + rng.choice([0, 1]) :]
        try:
            read_reading_table(written(tmp_path, text), rng.choice([None, COUGH]))
            outcomes["read"] += 1
        except InputError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 50, outcomes
