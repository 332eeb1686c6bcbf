"""The commands from radiographs to a dataset, with the network in the package or one of one's own."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from radreason.cli import main
from radreason.data.dataset import Dataset
from radreason.data.splits import Splits
from radreason.data.synthetic_radiograph import phantom_chest
from radreason.lungs.finder import WEIGHTS, LungFinder


@pytest.fixture
def run(capsys):
    def call(*tokens, code=0):
        assert main([str(token) for token in tokens]) == code, capsys.readouterr().err
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return shown.err if code else shown.out

    return call


@pytest.fixture
def films(tmp_path):
    """Five phantoms of five patients, the last one the mirror image of the first."""
    rows = ["case,patient,image,tb,cavity,site"]
    for n in range(5):
        grey = phantom_chest((200, 180), shift=n % 4 / 50, noise=0.0, seed=n % 4).grey
        pixels = np.rint((grey if n < 4 else grey[:, ::-1]) * 255).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{n}.png")
        rows.append(
            f"c{n},p{n},{n}.png,{n % 2},{'' if n == 1 else 1 - n % 2},{'south' if n < 3 else 'north'}"
        )
    (tmp_path / "cases.csv").write_text("\n".join(rows))
    return tmp_path


OPTIONS = ("--keep", "site", "--findings", "tb,cavity", "--disease", "tb", "--folds", "2", "--workers", "1")


def test_from_a_table_to_a_dataset_and_a_look_at_it(run, films):
    cases, out = films / "cases.csv", films / "out"
    small = ("--size", "64", "--margin", "4")
    assert "5 cases would be prepared" in run("prepare", "cxr", "--cases", cases, "--check", *OPTIONS, *small)
    assert "Wrote" in run("prepare", "cxr", "--cases", cases, "--out", out, *OPTIONS, *small)
    dataset = Dataset.open(out)
    assert dataset.core == (64, 64)
    assert dataset.counts["missing"] == {"tb": 0, "cavity": 1}
    first, mirrored = (dataset.patches_at([row])[0].astype(int) for row in (0, 4))
    assert np.abs(mirrored - first[:, ::-1]).max() <= 2
    assert np.abs(mirrored - first).max() > 100
    again = json.loads(run("prepare", "cxr", "--cases", cases, "--out", out, *OPTIONS, *small, "--json"))
    assert again["fingerprint"] == dataset.fingerprint
    assert "Drew 5 cases" in run("data", "show", out)
    told = json.loads(run("data", "split", out, "--by", "site", "--repeats", "2", "--json"))
    assert (told["folds"], told["repeats"]) == (2, 2)
    assert told["notes"] == ["fold 0 tests site north: 2 cases", "fold 1 tests site south: 3 cases"]
    assert Splits.read(dataset).testing(1, 0).tolist() == [3, 4]
    assert "other settings: patch, cut" in run(
        "prepare", "cxr", "--cases", cases, "--out", out, *OPTIONS, "--size", "32", "--margin", "4", code=2
    )


def test_what_is_asked_wrongly(run, films):
    cases = films / "cases.csv"
    assert "expected: --cases, and either --out or --check" in run("prepare", "cxr", code=2)
    assert "no findings" in run("prepare", "cxr", "--cases", cases, "--check", code=2)
    assert "63 pixels" in run("prepare", "cxr", "--cases", cases, "--check", *OPTIONS, "--size", "63", code=2)
    said = run("prepare", "cxr", "--cases", cases, "--check", *OPTIONS, "--weights", cases, code=2)
    assert "weights" in said
    example = films / "example.csv"
    assert "Wrote" in run("prepare", "cxr", "--example", example)
    assert "film-1" in example.read_text()


def test_a_network_of_ones_own(run, films):
    rows = ["image,mask,drawing"]
    for n in range(4):
        mask = phantom_chest((200, 180), shift=n / 50, seed=n).lungs > 0
        Image.fromarray((mask * 255).astype(np.uint8)).save(films / f"{n}m.png")
        rows.append(f"{n}.png,{n}m.png,clear")
    (films / "pairs.csv").write_text("\n".join(rows))
    found = json.loads(
        run(
            "train-lungs",
            films / "pairs.csv",
            "--out",
            films / "net",
            "--folds",
            "0",
            "--epochs",
            "1",
            "--json",
        )
    )
    assert found["pairs"] == 4
    weights = films / "net/lungs.safetensors"
    checked = run("prepare", "cxr", "--cases", films / "cases.csv", "--check", *OPTIONS, "--weights", weights)
    assert "5 cases would be prepared" in checked
    assert "--folds 1" in run(
        "train-lungs", films / "pairs.csv", "--out", films / "x", "--folds", "1", code=2
    )


def test_the_weights_in_the_package_are_small_and_have_a_card():
    assert WEIGHTS.stat().st_size < 5_000_000
    card = WEIGHTS.with_suffix(".md").read_text()
    assert LungFinder().to_dict()["weights_sha256"] in card
    assert "CC BY" in card
