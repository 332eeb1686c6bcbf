"""``radreason diagnose`` as a user and as a program meets it."""

import json
import shutil

import polars
import pytest

from radreason.cli import main


@pytest.fixture
def call(capsys):
    def run(*tokens, code=0):
        assert main(["diagnose", *map(str, tokens)]) == code, capsys.readouterr().err
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return shown

    return run


def case(study, place=0):
    return f"{study.dataset.folder}:{study.dataset.cases[study.tested()[place]].id}"


def test_a_page_for_people(ct, call):
    shown = call(ct.run, case(ct)).out
    for words in (
        "BN-1 (P_B)",
        "GCN out",
        "fusion",
        "BN-2 (final)",
        "margin",
        "likeliest grade",
        "its label",
    ):
        assert words in shown
    assert "Not a medical device" in shown
    assert "texture" in call(ct.run, case(ct), "--stages").out.split("all grades")[1].split("BN-1")[1]


def test_a_document_for_programs(ct, call):
    one = json.loads(call(ct.run, case(ct), "--json").out)
    assert list(one["stages"]) == ["evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2"]
    for beliefs in (*one["stages"].values(), one["attributes"]):
        assert all(sum(belief.values()) == pytest.approx(1, abs=1e-5) for belief in beliefs.values())
    assert one["disease"]["belief"] == one["stages"]["bn2"]["malignancy"]
    assert one["truth"]["malignancy"] in (
        {"benign": 1.0, "malignant": 0.0},
        {"benign": 0.0, "malignant": 1.0},
    )
    assert one["trace"]["models"]["model"]
    assert one["trace"]["tool"].startswith("radreason ")
    many = call(ct.crossval, ct.dataset.folder, "--json").out.splitlines()
    assert [json.loads(line)["case"] for line in many] == [c.id for c in ct.dataset.cases]


def test_a_place_in_a_scan_by_each_option(ct, call):
    scan = ct.folder / "Doe_Jane-0.nii.gz"
    at = [
        json.loads(call(ct.run, scan, *words, "--json").out)["trace"]
        for words in (("--at", "-3.5,2,1"), ("--at-ras", "3.5,-2,1"), ("--at=-3.5,2,1",))
    ]
    assert len({trace["patch_sha256"] for trace in at}) == 1
    assert at[0]["transforms"][0]["centre_mm"] == [-3.5, 2, 1]
    voxel = json.loads(call(ct.run, scan, "--voxel", "29.5,31.5,14.5", "--json").out)["trace"]
    assert voxel["transforms"][0]["centre_mm"] == pytest.approx([0, 0, 0], abs=1e-3)
    assert "one of them" in call(ct.run, scan, "--at", "1,1,1", "--voxel", "1,1,1", code=2).err
    assert "three numbers" in call(ct.run, scan, "--at", "1,1", code=2).err
    assert "both" in call(ct.run, scan, "--mask-part", "1", code=2).err
    assert "one or more" in call(ct.run, code=2).err
    assert "1 or more" in call(ct.run, scan, "--at", "1,1,1", "--batch", "0", code=2).err
    outside = call(ct.run, scan, "--at", "500,1,1", code=2).err
    assert "lies outside of the scan" in outside
    assert "expected" in outside
    assert "try" in outside


def test_what_is_refused_among_many_is_said_and_the_rest_goes_on(ct, call):
    assert "neither an image file" in call(ct.run, ct.folder / "tiny.toml", code=2).err
    specs = (case(ct, 0), ct.folder / "tiny.toml", case(ct, 1))
    assert "neither an image file" in call(ct.run, *specs).err
    folder = ct.folder / "some"
    folder.mkdir()
    shutil.copy(ct.folder / "Doe_Jane-0.nii.gz", folder)
    shown = call(ct.run, folder, case(ct), "--json").out.splitlines()
    first, last = map(json.loads, shown)
    assert first["case"] == ct.dataset.cases[ct.tested()[0]].id
    assert "no place in them" in last["refused"]
    assert "Doe" not in last["refused"]
    shown = call(ct.run, folder, case(ct))
    assert "1 could not be asked" in shown.err
    assert "Doe_Jane-0" in shown.err  # who gave it may read it
    trained = next(c.id for row, c in enumerate(ct.dataset.cases) if row not in ct.tested())
    assert "trained the run" in call(ct.run, f"{ct.dataset.folder}:{trained}", code=2).err


def test_lines_are_gone_on_with_after_a_kill(ct, call, tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    assert "12 answers written" in call(ct.crossval, ct.dataset.folder, "--out", whole).out
    lines = whole.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:4]) + lines[4][:100])
    shown = json.loads(call(ct.crossval, ct.dataset.folder, "--out", cut, "--json", "--batch", "1").out)
    assert (shown["answers"], shown["before"], shown["refused"]) == (8, 4, [])
    one, other = ([json.loads(line) for line in path.read_text().splitlines()] for path in (whole, cut))
    assert [line["case"] for line in one] == [line["case"] for line in other]
    assert all(a["trace"] == b["trace"] for a, b in zip(one, other, strict=True))
    assert "0 answers written" in call(ct.crossval, ct.dataset.folder, "--out", cut).out
    assert "another run" in call(ct.run, case(ct), "--out", cut, code=2).err
    cut.write_text("something else\n")
    assert "no answer" in call(ct.crossval, ct.dataset.folder, "--out", cut, code=2).err
    assert "ends in .jsonl or .parquet" in call(ct.run, case(ct), "--out", tmp_path / "a.txt", code=2).err


def test_a_table_holds_what_the_lines_hold(ct, call, tmp_path):
    lines, table = tmp_path / "a.jsonl", tmp_path / "a.parquet"
    call(ct.crossval, ct.dataset.folder, "--out", lines)
    begun = table.with_name("a.parquet.unfinished")
    begun.write_bytes(b"".join(lines.read_bytes().splitlines(keepends=True)[:5]))
    assert "5 were there before" in call(ct.crossval, ct.dataset.folder, "--out", table).out
    assert not begun.exists()
    rows = polars.read_parquet(table).to_dicts()
    for row, line in zip(rows, map(json.loads, lines.read_text().splitlines()), strict=True):
        assert row["case"] == line["case"]
        assert row["bn1 texture=2"] == pytest.approx(line["stages"]["bn1"]["texture"]["2"], rel=1e-5)
        assert row["malignancy"] == max(line["truth"]["malignancy"], key=line["truth"]["malignancy"].get)
        assert json.loads(row["trace"]) == line["trace"]
    assert "is there already" in call(ct.crossval, ct.dataset.folder, "--out", table, code=2).err


def test_one_of_several_files_that_is_no_image_costs_itself_alone(ct, call, tmp_path):
    """Alone it is refused; beside a good one it is listed, and the good one is answered."""
    bad, words = tmp_path / "film.png", tmp_path / "words.npy"
    bad.write_bytes(b"no picture")
    words.write_text("no array", encoding="utf-8")
    call(ct.run, bad, code=2)
    shown = call(ct.run, bad, words, case(ct), "--json").out
    told = [json.loads(line) for line in shown.splitlines()]
    assert [("refused" in one) for one in told] == [False, True, True]
    assert "unsafe" not in shown
