"""Tables of states: what a spreadsheet saves is read, and everything else is answered by line."""

from __future__ import annotations

import csv
import gzip
import io
import os
import random
import subprocess
import time
from contextlib import suppress

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from radreason import InputError, Schema, Variable
from radreason.data import parquet_as_csv, read_states
from radreason.data import table as table_file

QUICK = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def states_of(table, name):
    """The column in words, None where missing."""
    states = table.schema[name].states
    return [None if code < 0 else states[code] for code in table.columns[name].tolist()]


def test_states_are_found_and_sorted_as_a_person_would(tmp_path):
    table = read_states(
        write(tmp_path, "grade,size,mix\n10,grade 10,b\n2,grade 2,A\n-1.5,grade 10,10\n,NA,9\n2,?,b\n")
    )
    assert [v.states for v in table.schema] == [
        ("-1.5", "2", "10"),
        ("grade 2", "grade 10"),
        ("9", "10", "A", "b"),
    ]
    assert [v.ordered for v in table.schema] == [True, False, False]
    assert states_of(table, "grade") == ["10", "2", "-1.5", None, "2"]
    assert states_of(table, "mix") == ["b", "A", "10", "9", "b"]
    assert table.n_rows == 5
    assert table.notes == ("grade: 1 of 5 missing", "size: 2 of 5 missing")


def test_whole_numbers_saved_as_decimals_are_the_same_states(tmp_path):
    table = read_states(write(tmp_path, "a,b\n1.0,x\n2,y\n1,x\n"))
    assert table.schema["a"].states == ("1", "2")
    assert states_of(table, "a") == ["1", "2", "1"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "a,b\n1,x\n2,y\n"),
        ("t.csv", "a,b\r\n1,x\r\n\r\n2,y"),
        ("t.csv", "\ufeffa , b\n 1 , x\n2,y\n"),
        ("t.csv", "a;b\n1;x\n2;y\n"),
        ("t.CSV", '"a","b"\n"1","x"\n"2",y\n'),
        ("t.tsv", "a\tb\n1\tx\n2\ty\n"),
        ("t.txt", "a\tb\n1\tx\n2\ty\n"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,x\n2,y\n")),
    ],
)
def test_the_ways_in_which_tables_are_saved(tmp_path, name, content):
    table = read_states(write(tmp_path, content, name))
    assert (states_of(table, "a"), states_of(table, "b")) == (["1", "2"], ["x", "y"])


SCHEMA = Schema((Variable("margin", ("1", "2", "3")), Variable("spiculation", ("none", "NA", "marked"))))


def test_a_schema_says_which_columns_and_states_there_are(tmp_path):
    table = read_states(write(tmp_path, "id,spiculation,margin\n7,NA,1.0\n8,none,\n"), SCHEMA)
    assert table.schema is SCHEMA
    assert states_of(table, "spiculation") == ["NA", "none"]  # a state of the schema, not a gap
    assert states_of(table, "margin") == ["1", None]
    assert table.notes == ("columns left out: id", "margin: 1 of 2 missing")


def test_columns_may_be_chosen(tmp_path):
    table = read_states(write(tmp_path, "id,a,b\n1,x,p\n1,y,q\n"), columns=["b", "a"])
    assert table.schema.names == ("b", "a")


def test_an_unknown_state_is_named_with_its_line(tmp_path):
    path = write(tmp_path, 'margin,spiculation\n1,none\n2,"marked"\n\n3,markd\n')
    with pytest.raises(InputError) as error:
        read_states(path, SCHEMA)
    assert str(error.value) == (
        f"{path}: line 5: unknown state of 'spiculation': 'markd'\n"
        "  expected: one of none, NA, marked\n"
        "  try: 'marked', if that was meant"
    )


WRONG = {
    "empty": ("", "no header"),
    "blank lines": ("\n\n\n", "no header"),
    "commas": (",,,\n", "no header"),
    "only a header": ("a,b\n", "a header and no rows"),
    "no header": ("1,2\n3,4\n", "line 1 holds only numbers: 1, 2"),
    "nameless column": ("a,,c\n1,2,3\n", "column 2 has no name"),
    "same names": ("a,b,a \n1,2,3\n", "two columns named 'a'"),
    "short row": ("a,b\n1,2\n3\n", "line 3: 1 cell\n"),
    "long row": ("a,b\n1,2\n3,4,5\n", "line 3: 3 cells\n"),
    "cut off": ("a,b,c\n1,2,3\n1,2", "line 3: 2 cells"),
    "open quote": ('a,b\n1,2\n3,"4\n5,6\n', "line 4: unexpected end of data"),
    "stray quote": ('a,b\n1,"2"3\n', "line 2: ',' expected after '\"'"),
    "one state": ("a,b\n1,2\n1,3\n", "column 'a' holds only '1'"),
    "no value": ("a,b\n,2\nNA,3\n", "column 'a' holds nothing"),
    "numbers": ("a\n" + "\n".join(str(i / 7) for i in range(2000)), "more than 1,000 different values"),
    "Latin-1": ("a,b\n1,é\n".encode("latin-1"), "line 2: byte 0xe9 is not UTF-8"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
    "zero bytes": (b"a,b\n1,\0\n", "not text: byte 6 is zero"),
    "picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not text"),
    "old Mac": ("a,b\r1,2\r3,4\r", "new-line character"),
    "long cell": ("a,b\n1," + "x" * 200_000, "field larger than field limit"),
    "many columns": (",".join(f"c{i}" for i in range(3000)), "at most 2,000"),
    "long digits": ("a,b\n" + "9" * 100_000 + ",1\n", "column 'a' holds only"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_table_is_refused(tmp_path, case):
    content, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        read_states(write(tmp_path, content))


def test_long_digits_sort(tmp_path):
    table = read_states(write(tmp_path, f"a,b\nx{'9' * 5000},1\nx{'8' * 5000},2\nx007,1\n"))
    assert [len(state) for state in table.schema["a"].states] == [4, 5001, 5001]


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.csv")
    for name in ("folder.csv", "pipe.csv", "none.csv", "a\0.csv", "table.xlsx", "table"):
        with pytest.raises(InputError):
            read_states(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read"):
        read_states(write(tmp_path, b"\x1f\x8b\x08\0\0\0\0\0\0\0broken", "t.csv.gz"))
    with pytest.raises(InputError, match=r"unknown column in .*: 'c'"):
        read_states(write(tmp_path, "a,b\n1,2\n2,1\n"), columns=["c"])


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(table_file, "MAX_BYTES", 1 << 20)
    with pytest.raises(InputError, match="more than 1 MiB"):
        read_states(write(tmp_path, gzip.compress(b"a" * (1 << 22)), "t.csv.gz"))


@pytest.mark.parametrize(
    "content", ['"' * 1_000_001, "a,b\n" + "\n" * 1_000_000, "," * 1_000_000, "a;" * 500_000]
)
def test_time_grows_with_the_file_and_no_faster(tmp_path, content):
    start = time.process_time()
    with pytest.raises(InputError):
        read_states(write(tmp_path, content))
    assert time.process_time() - start < 5


def test_a_million_cells_in_a_moment(tmp_path):
    codes = np.random.default_rng(0).integers(1, 6, (100_000, 10))
    lines = [",".join("abcdefghij"), *(",".join(map(str, row)) for row in codes.tolist())]
    path = write(tmp_path, "\n".join(lines))
    start = time.process_time()
    table = read_states(path)
    assert time.process_time() - start < 3
    assert all((table.columns[name] + 1 == codes[:, i]).all() for i, name in enumerate("abcdefghij"))


cell = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8)


@QUICK
@given(
    st.integers(2, 4).flatmap(
        lambda w: st.lists(st.lists(cell, min_size=w, max_size=w), min_size=2, max_size=9)
    )
)
def test_any_cells_come_back_as_the_csv_module_wrote_them(tmp_path, rows):
    header = [f"c{i}" for i in range(len(rows[0]))]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    meant = [[None if c.strip() in table_file.MISSING else c.strip() for c in row] for row in rows]
    try:
        table = read_states(write(tmp_path, out.getvalue()))
    except InputError:  # a column of one state, or of none
        assert any(len({row[i] for row in meant} - {None}) < 2 for i in range(len(header)))
        return
    for i, name in enumerate(header):
        read = states_of(table, name)
        if not any(c and c.replace(".", "").replace("+", "").replace("-", "").isdecimal() for c in read if c):
            assert read == [row[i] for row in meant]


@QUICK
@given(st.binary(max_size=200) | st.text('ab,;"\t\n\r\0 1é', max_size=60).map(str.encode))
def test_any_bytes_are_a_table_or_refused(tmp_path, content):
    for name in ("t.csv", "t.tsv", "t.csv.gz"):
        with suppress(InputError):
            assert read_states(write(tmp_path, content, name)).n_rows > 0


def test_truncated_and_damaged_tables(tmp_path):
    rng = random.Random(0)
    whole = b'margin,spiculation\n1,none\n2,"marked"\n3,NA\n1.0,\n'
    damaged = [whole[:end] for end in range(len(whole))]
    for _ in range(500):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 2, 6])):
            content[rng.randrange(len(content))] = rng.choice(b',;"\n\r\0\xff\t1a')
        damaged.append(bytes(content))
    read = 0
    for content in damaged:
        for schema in (None, SCHEMA):
            with suppress(InputError):
                read += read_states(write(tmp_path, content), schema).n_rows > 0
    assert 0 < read < 2 * len(damaged)


def test_parquet(tmp_path):
    frame = pl.DataFrame({"a": ["x", None, "y,z"], "b": [1.0, 2.0, None], "c": [True, False, True]})
    frame.write_parquet(tmp_path / "t.parquet")
    table = read_states(tmp_path / "t.parquet")
    assert states_of(table, "a") == ["x", None, "y,z"]
    assert states_of(table, "b") == ["1", "2", None]
    assert states_of(table, "c") == ["true", "false", "true"]


def test_damaged_parquet(tmp_path, monkeypatch):
    """In this process polars would panic on the truncated file and print a Rust backtrace."""
    pl.DataFrame({"a": ["x", "y"] * 9, "b": [[1], [2]] * 9}).write_parquet(tmp_path / "lists.parquet")
    content = (tmp_path / "lists.parquet").read_bytes()
    with pytest.raises(InputError, match="a Parquet file with columns of texts, numbers or Booleans"):
        read_states(write(tmp_path, content[: len(content) // 2], "half.parquet"))
    with pytest.raises(InputError, match="cannot be read: "):
        read_states(write(tmp_path, b"PAR1" + b"\xff" * 100 + b"PAR1", "t.parquet"))


def test_a_reader_that_crashes_or_hangs_is_answered(tmp_path, monkeypatch):
    pl.DataFrame({"a": ["x", "y"], "b": ["1", "2"]}).write_parquet(tmp_path / "t.parquet")

    def crash(command, **_):
        return subprocess.CompletedProcess(
            command, -6, b"", b"memory allocation of 2305843009213693944 bytes failed"
        )

    monkeypatch.setattr(parquet_as_csv.subprocess, "run", crash)
    with pytest.raises(InputError, match="the reader crashed"):
        read_states(tmp_path / "t.parquet")

    def hang(command, timeout, **_):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(parquet_as_csv.subprocess, "run", hang)
    with pytest.raises(InputError, match="not read in 120 seconds"):
        read_states(tmp_path / "t.parquet")
