"""Tables of cases: rows that say enough, and for each way of saying too little the reason."""

import csv
import io

import pytest

from radreason import InputError
from radreason.data.case_table import EXAMPLE, read_cases, write_example
from radreason.data.reading_table import read_reading_table

HEADER = "case,patient,image,series_uid,x,y,z,position,mask,mask_part,age,name"


def table(folder, *rows, header=HEADER, name="cases.csv"):
    (folder / name).write_text("\n".join([header, *rows]) + "\n")
    return folder / name


def test_rows(tmp_path):
    read = read_cases(
        table(
            tmp_path,
            "a, p1 ,s/1.nii,,-1.5,2,3e1,LPS mm,,,61,Doe",
            "b,p1,s/1.nii,,1,2,3,voxel,,,,Doe",
            "c,p2,,1.2.3,,,,,m.dcm,GTV 1,NA,Doe",
            "d,p3,/x/y.mha,9.8,1,2,3,RAS mm,m.nii,,70,Doe",
        ),
        keep=["age"],
        grades=["margin", "age"],
    )
    a, b, c, d = read.rows
    assert read.refused == ()
    assert (a.line, a.case, a.patient, a.image) == (2, "a", "p1", tmp_path / "s/1.nii")
    assert (a.position, a.frame, a.mask) == ((-1.5, 2.0, 30.0), "LPS mm", None)
    assert a.scan == b.scan != c.scan == "1.2.3"
    assert "1.nii" not in a.scan
    assert (c.image, c.position, c.mask, c.mask_part) == (None, None, tmp_path / "m.dcm", "GTV 1")
    assert (str(d.image), d.scan, d.frame, d.mask) == ("/x/y.mha", "9.8", "RAS mm", tmp_path / "m.nii")
    assert [dict(row.cells) for row in read.rows] == [{"age": "61"}, {"age": ""}, {"age": ""}, {"age": "70"}]
    assert read.notes == ("columns left out: name",)
    assert "Doe" not in str(read)


WRONG = {
    ",p,i,,1,2,3,voxel,,": "no case",
    "a,,i,,1,2,3,voxel,,": "no patient",
    "a,NA,i,,1,2,3,voxel,,": "no patient",
    "a,p,,,1,2,3,voxel,,": "neither image nor series_uid",
    "a,p,i,,,,,,,": "neither a position nor a mask",
    "a,p,i,,1,,3,voxel,,": "no y",
    "a,p,i,,1,2,3,,,": "position is empty",
    "a,p,i,,1,2,3,mm,,": "position is 'mm', not one of LPS mm, RAS mm, voxel",
    "a,p,i,,1,2,3 mm,voxel,,": "z is '3 mm', not a number",
    "a,p,i,,nan,2,3,voxel,,": "no x",
    "a,p,i,,inf,2,3,voxel,,": "x is 'inf', not a number",
    "a,p,i,,1e999,2,3,voxel,,": "x is '1e999', not a number",
    "a,p,i,,,,,voxel,m,": "no x",
    "a,p,i,,1,2,3,voxel,,1": "mask_part without a mask",
    "good,p,i,,1,2,3,voxel,,": "the same case as in line 2",
}


@pytest.mark.parametrize("row", WRONG)
def test_a_row_that_cannot_be_used_says_why_and_costs_nothing_else(tmp_path, row):
    good = "good,p,i,,1,2,3,voxel,,,,"
    read = read_cases(table(tmp_path, good, f"{row},,", good.replace("good", "better")))
    assert [r.case for r in read.rows] == ["good", "better"]
    ((case, reason),) = read.refused
    assert case == (row.split(",")[0] or "line 3")
    assert reason.startswith("line 3: ")
    assert WRONG[row] in reason


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("patient,image,mask", "unknown column in"),
        ("case,image,mask", "'patient'"),
        ("case,patient,mask", "which scan"),
        ("case,patient,image", "where in the scan"),
        ("case,patient,image,x,y,z", "where in the scan"),
    ],
)
def test_a_table_without_a_needed_column_is_refused(tmp_path, header, message):
    with pytest.raises(InputError, match=message):
        read_cases(table(tmp_path, ",".join("a" * len(header.split(","))), header=header))


def test_other_tables_are_refused(tmp_path):
    with pytest.raises(InputError, match="no rows"):
        read_cases(table(tmp_path))
    with pytest.raises(InputError, match="'sex'"):
        read_cases(table(tmp_path, "a,p,i,,1,2,3,voxel,,,,"), keep=["sex"])
    with pytest.raises(InputError, match="no such file"):
        read_cases(tmp_path / "none.csv")


def test_the_example_is_a_table_and_replaces_nothing(tmp_path):
    cases, readings = write_example(tmp_path / "mine.csv")
    read = read_cases(cases)
    rows = list(csv.DictReader(io.StringIO(EXAMPLE)))
    assert [row.case for row in read.rows] == [row["case"] for row in rows]
    assert read.refused == read.notes == ()
    assert {r.lesion for r in read_reading_table(readings).nodules} == {row["case"] for row in rows}
    with pytest.raises(InputError, match="there already"):
        write_example(tmp_path / "mine.csv")
