"""Radiographs through a table to a dataset. The radiographs are phantoms, the lungs where we drew them."""

from __future__ import annotations

import csv
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

from radreason import InputError, Schema, Variable
from radreason.data.case_table import read_cases
from radreason.data.dataset import Dataset
from radreason.data.lung_boxes import Lungs, box_of
from radreason.data.lung_crops import LungCrops
from radreason.data.prepare import prepare
from radreason.data.prepare_cxr import EXAMPLE, plan_cxr, write_example
from radreason.data.synthetic_radiograph import phantom_chest, write_radiograph
from radreason.report.contact_sheet import draw_contact_sheet
from radreason.schema import findings as schema_of_findings
from radreason.train.augment import Augmentation
from radreason.train.images import Images

CHEST = phantom_chest((128, 128))


@dataclass(frozen=True)
class Knows:
    """A finder that knows the phantom."""

    def __call__(self, grey, frame):
        return Lungs(CHEST.lungs, (box_of(CHEST.lungs == 1), box_of(CHEST.lungs == 2)))

    def to_dict(self):
        return {"knows": True}


CUT = LungCrops(Knows(), 48, 32, 4)


def write_table(path, rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def films(tmp_path):
    stored = np.rint(CHEST.grey * 4095).astype(np.int64)
    write_radiograph(tmp_path / "Doe_Jane.dcm", stored, PatientOrientation=["L", "F"])
    write_radiograph(tmp_path / "negative.dcm", 4095 - stored, negative=True)
    Image.fromarray(np.rint(CHEST.grey * 255).astype(np.uint8)).save(tmp_path / "b.png")
    Image.fromarray(stored.astype(np.uint16)).save(tmp_path / "dark.png")
    return tmp_path


def rows_of():
    one = {"case": "a", "patient": "p1", "image": "Doe_Jane.dcm", "tb": "1", "cavity": "", "age": "40"}
    return [
        one,
        one | {"case": "b", "patient": "p2", "image": "b.png", "tb": "no", "cavity": "1.0"},
        one | {"case": "c", "patient": "p3", "image": "dark.png", "black": "0", "white": "4095", "tb": ""},
        one | {"case": "d", "patient": "p4", "image": "negative.dcm", "tb": "0", "cavity": "0"},
    ]


def test_a_table_becomes_a_dataset(films):
    plan = plan_cxr(
        write_table(films / "cases.csv", rows_of()), findings=["tb", "cavity"], disease="tb", keep=["age"]
    )
    outcome = prepare(plan, CUT, films / "out")
    assert outcome.excluded == ()
    dataset = Dataset.open(films / "out")
    dataset.verify()
    assert dataset.kind == "cxr"
    assert [v.states for v in dataset.schema] == [("no", "yes")] * 2
    assert dataset.schema.disease == "tb"
    assert dataset.core == (48, 32)
    assert dataset.patches.shape == (4, 56, 40)
    assert [case.labels["tb"] for case in dataset.cases] == [(0, 1), (1, 0), None, (1, 0)]
    assert [case.labels["cavity"] for case in dataset.cases] == [None, (0, 1), None, (1, 0)]
    assert dataset.counts["missing"] == {"tb": 1, "cavity": 2}
    assert all(case.extra["age"] == "40" for case in dataset.cases)
    first = dataset.patches[0].astype(int)
    for other, step in zip(dataset.patches[1:].astype(int), (4095 / 255, 1, 1), strict=True):
        assert np.abs(other - first).max() <= step  # the same chest in one range, whatever the file
    assert dataset.masks is not None
    assert dataset.masks.mean() > 0.3
    assert "states no orientation: the patient's right is taken to be at the left" in " ".join(outcome.notes)
    whole = (films / "out/dataset.json").read_text() + (films / "out/cases.jsonl").read_text()
    assert "Doe" not in whole


def test_training_and_contact_sheets_take_two_dimensions(films):
    plan = plan_cxr(write_table(films / "cases.csv", rows_of()), findings=["tb", "cavity"], disease="tb")
    dataset = prepare(plan, CUT, films / "out").dataset
    assert draw_contact_sheet(dataset, films / "sheet.png") == [2, 1, 3, 0]
    assert (films / "sheet.png").stat().st_size > 10_000
    images = Images(dataset)
    assert images.plain([0, 2]).shape == (2, 1, 48, 32)
    changed = images.training([0, 1], Augmentation("left-right", degrees=5, shift=4, scale=0.1), 0, 0)
    assert changed.shape == (2, 1, 48, 32)
    assert 0 <= changed.min() < changed.max() <= 4095
    shifted = images.training([0], Augmentation(shift=4), 0, 0)[0, 0]
    places = [
        (i, j)
        for i in range(9)
        for j in range(9)
        if np.array_equal(shifted, dataset.patches[0][i : i + 48, j : j + 32])
    ]
    assert len(places) == 1


def test_interrupted_it_ends_in_the_same_bytes(films, monkeypatch):
    table = write_table(films / "cases.csv", rows_of())

    def plan():
        return plan_cxr(table, findings=["tb", "cavity"], disease="tb")

    whole = prepare(plan(), CUT, films / "one").dataset

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(plan(), CUT, films / "two", progress=stop)
    again = prepare(plan(), CUT, films / "two").dataset
    assert again.fingerprint == whole.fingerprint
    with pytest.raises(InputError, match="other settings: cut"):
        prepare(plan(), LungCrops(Knows(), 48, 32, 4, pad=0.1), films / "two")


def test_what_is_wrong_with_one_row_costs_that_row(films):
    one = rows_of()[0]
    (films / "text.png").write_text("no picture")
    rows = [
        *rows_of(),
        one | {"case": "e", "image": "none.png"},
        one | {"case": "f", "image": "text.png"},
        one | {"case": "g", "patient": ""},
        one | {"case": "h", "patient": "p9"},
        one | {"case": "i", "tb": "perhaps"},
        one | {"case": "j", "patient": "p3", "image": "dark.png"},
        one | {"case": "k", "white": "255"},
        one | {"case": "l", "black": "7", "white": "7"},
        one | {"case": "a"},
        one | {"case": "m", "image": ""},
    ]
    plan = plan_cxr(write_table(films / "cases.csv", rows), findings=["tb", "cavity"], disease="tb")
    outcome = prepare(plan, CUT, films / "out")
    assert outcome.cases == 4
    found = dict(outcome.excluded)
    assert found.pop("f").endswith("text.png: cannot be read: no PNG or JPEG")
    assert found.pop("j").startswith(f"{films / 'dark.png'}: values from ")
    assert found == {
        "e": "line 6: no such image",
        "g": "line 8: no patient: folds are made by patient",
        "h": "line 9: the scan is that of another patient in line 2",
        "i": "line 10: unknown state of 'tb': 'perhaps'",
        "k": "line 12: black and white are not two numbers",
        "l": "line 13: black at 7 and white at 7",
        "a": "line 14: the same case as in line 2",
        "m": "line 15: no image",
    }
    kept = {entry["case"]: entry["reason"] for entry in outcome.dataset.excluded}
    assert kept["f"] == "file 1: cannot be read: no PNG or JPEG"
    tried = prepare(plan, CUT, None)
    assert (tried.cases, tried.excluded) == (outcome.cases, outcome.excluded)
    with pytest.raises(InputError, match="g: line 8: no patient"):
        prepare(plan, CUT, films / "strict", strict=True)


def test_readers_may_have_a_table_of_their_own(films):
    cases = write_table(
        films / "cases.csv", [{k: r[k] for k in ("case", "patient", "image")} for r in rows_of()[:2]]
    )
    said = [
        {"case": "a", "reader": "1", "tb": "yes", "size": "large"},
        {"case": "a", "reader": "2", "tb": "yes", "size": "small"},
        {"case": "a", "reader": "3", "tb": "no", "size": ""},
        {"case": "b", "reader": "1", "tb": "", "size": "small"},
    ]
    schema = Schema((Variable("size", ("none", "small", "large")), Variable("tb", ("no", "yes"))), "tb")
    plan = plan_cxr(cases, write_table(films / "said.csv", said), schema=schema)
    dataset = prepare(plan, CUT, films / "out").dataset
    assert dataset.cases[0].labels["tb"] == pytest.approx((0, 1))
    assert dataset.cases[1].labels["tb"] is None
    assert len(dataset.cases[0].readings) == 3


def test_what_to_look_for_must_be_said(films):
    cases = write_table(films / "cases.csv", rows_of())
    with pytest.raises(InputError, match="no findings, no readings and no schema"):
        plan_cxr(cases)
    with pytest.raises(InputError, match=r"unknown column in .*: 'cavities'"):
        plan_cxr(cases, findings=["cavities"], disease="tb")
    with pytest.raises(InputError, match="a schema and a list of findings"):
        plan_cxr(cases, findings=["tb"], schema=schema_of_findings(["tb"], None))
    assert schema_of_findings(["cavity"], "tb").names == ("cavity", "tb")


def test_the_example_is_read_as_it_is_written(tmp_path):
    path = write_example(tmp_path / "cases.csv")
    assert path.read_text() == EXAMPLE
    assert len(read_cases(path, whole=True).rows) == 5
    with pytest.raises(InputError, match="is there already"):
        write_example(path)
