"""``radreason compare`` as a person would use it: what it prints, writes, keeps and refuses."""

import csv
import json
import re
import xml.etree.ElementTree as ET

import pytest

from radreason.cli import main

from .conftest import PATIENTS, Invented, write

FEW = ["--resamples", "40"]


@pytest.fixture(autouse=True)
def _patients(monkeypatch):
    """Stand in for a dataset: who the patient of each case is."""
    monkeypatch.setattr("radreason.cli.compare._patients", lambda data: PATIENTS)


def test_two_runs_side_by_side(two_runs, capsys):
    assert main(["compare", *map(str, two_runs), "--baseline", "poor", "--data", "somewhere", *FEW]) == 0
    shown = capsys.readouterr().out
    for words in (
        "Threshold 0.5",
        "Difference to poor",
        "Calibration",
        "What it took",
        "120 cases of 60 patients",
    ):
        assert words in shown
    assert "Stages of good" not in shown
    assert "…" not in shown  # no number cut off


def test_stages_are_shown_where_asked_for(two_runs, capsys):
    assert main(["compare", str(two_runs[0]), "--stages", *FEW]) == 0
    shown = capsys.readouterr().out
    assert "BN-1 output (published)" in shown
    assert "intervals resample cases" in shown


def test_a_page_and_every_table_in_three_formats(tmp_path, two_runs, capsys):
    out = tmp_path / "new/out"
    paper = ["--paper", "good=tab:lidcsota/O2*"]
    assert main(["compare", *map(str, two_runs), "--out", str(out), *paper, *FEW]) == 0
    capsys.readouterr()
    page = (out / "compare.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert re.findall(r"""(?:src|href)=["']?([^#"' >][^"' >]*)""", page) == []
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 2
    for drawing in drawings:
        ET.fromstring(drawing)
    for text in (
        "Not a medical device",
        "O2* Our-Efficient-B4-FPN* (as published, other data)",
        "95.36±0.10",
    ):
        assert text in page
    with (out / "at_half.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["published"] for row in rows] == ["no", "yes", "no"]
    assert float(rows[1]["AUC"]) == 0.9654
    assert float(rows[1]["AUC sd"]) == 0.0032
    tex = (out / "at_half.tex").read_text(encoding="utf-8")
    assert len([line for line in tex.splitlines() if line.endswith(r" \\")]) == 4
    assert r"\textit{95.36$\pm$0.10}" in tex
    lines = (out / "at_half.md").read_text(encoding="utf-8").splitlines()
    widths = {line.count("|") - line.count("\\|") for line in lines if line.startswith("|")}
    assert len(widths) == 1


def test_the_same_runs_give_the_same_page(tmp_path, two_runs, capsys):
    for name in ("one", "two"):
        assert main(["compare", *map(str, two_runs), "--out", str(tmp_path / name), *FEW]) == 0
    capsys.readouterr()
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_kept_methods_compare_as_the_runs_did(tmp_path, two_runs, capsys):
    runs = [*map(str, two_runs), "--names", "ours", "theirs"]
    assert main(["compare", *runs, "--keep", str(tmp_path / "kept"), "--json", *FEW]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["compare", str(tmp_path / "kept"), "--json", *FEW]) == 0
    again = json.loads(capsys.readouterr().out)
    assert first["tables"] == again["tables"]
    assert str(tmp_path / "kept/ours.csv") in first["written"]
    assert first["tables"]["pooled"]["rows"][0]["AUC"].keys() == {"value", "low", "high"}


def test_limited_data_are_drawn_against_their_size(tmp_path, capsys):
    for percent in (25, 100):
        write(tmp_path / f"run/fraction-{percent}", Invented(cases=60, fraction=percent / 100))
    assert main(["compare", str(tmp_path / "run"), "--out", str(tmp_path / "out"), *FEW]) == 0
    capsys.readouterr()
    page = (tmp_path / "out/compare.html").read_text(encoding="utf-8")
    assert "Training size" in page
    assert "training cases" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no runs"),
        (["GOOD", "nowhere"], "no plan.json"),
        (["GOOD", "POOR", "--names", "one"], "1 names for 2 runs"),
        (["GOOD", "--paper", "god=tab:lidcsota/O2"], "METHOD=TABLE/ROW"),
        (["GOOD", "--paper", "good=tab:lidcsota/O9"], "unknown row"),
        (["GOOD", "--protocol", "off-by-one"], "ordered grades"),
        (["GOOD", "POOR", "--baseline", "pore"], "'poor', if that was meant"),
        (["GOOD", "GOOD"], "two methods called good"),
        (["GOOD", "--resamples", "0"], "0 resamples"),
    ],
)
def test_what_cannot_be_compared_is_refused_without_a_traceback(two_runs, capsys, arguments, said):
    named = {"GOOD": str(two_runs[0]), "POOR": str(two_runs[1])}
    assert main(["compare", *(named.get(a, a) for a in arguments)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
