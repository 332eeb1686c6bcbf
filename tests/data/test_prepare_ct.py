"""A user's own scans through tables to a dataset. The scans are phantoms, their nodules where we put them."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from radreason import InputError, Schema, Variable
from radreason.data.consensus import Consensus
from radreason.data.cut_ct import Cut
from radreason.data.image_files import write_image
from radreason.data.prepare import prepare
from radreason.data.prepare_ct import plan_ct
from radreason.data.synthetic import Ball, Untidy, phantom_scan, write_series
from radreason.data.volume import Volume

BALL = Ball((9.3, -6.2, 4.1), 12.0)
CUT = Cut(size=24, margin=4)
SCHEMA = Schema(
    (Variable("margin", ("poor", "medium", "sharp")), Variable("malignancy", ("1", "2", "3"))), "malignancy"
)
OBLIQUE = np.array([[0.96, -0.28, 0], [0.28, 0.96, 0], [0, 0, 1.0]])
HEADER = ("case", "patient", "image", "series_uid", "x", "y", "z", "position", "mask", "margin", "malignancy")


def scan(turn=None, ball=BALL):
    return phantom_scan([ball], (30, 64, 60), (2.0, 0.9, 0.9), turn)


def write_table(path, rows, header=HEADER):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows([[row.get(name, "") for name in header] for row in rows])
    return path


def mask_of(volume, ball=BALL):
    mm = volume.to_mm(np.stack(np.meshgrid(*map(np.arange, volume.shape), indexing="ij"), -1))
    inside = np.linalg.norm(mm - np.array(ball.centre_mm), axis=-1) <= ball.diameter_mm / 2
    return Volume(inside, volume.affine)


@pytest.fixture
def folder(tmp_path):
    """Two patients: one scan as an image file and as a series, one oblique, each with a mask."""
    write_image(tmp_path / "Doe_Jane.nii.gz", scan())
    write_image(tmp_path / "turned.mha", scan(OBLIQUE))
    write_image(tmp_path / "mask.nii.gz", mask_of(scan()))
    write_image(tmp_path / "turned-mask.mha", mask_of(scan(OBLIQUE)))
    return tmp_path


def rows_of(folder, **others):
    x, y, z = BALL.centre_mm
    k, j, i = scan().to_index(BALL.centre_mm)
    one = {"patient": "p1", "image": "Doe_Jane.nii.gz", "margin": "sharp", "malignancy": "2.0"}
    return [
        one | {"case": "lps", "x": x, "y": y, "z": z, "position": "LPS mm"},
        one | {"case": "ras", "x": -x, "y": -y, "z": z, "position": "RAS mm"},
        one | {"case": "voxel", "x": i, "y": j, "z": k, "position": "voxel", "malignancy": ""},
        one | {"case": "mask", "mask": "mask.nii.gz"},
        {
            "case": "turned",
            "patient": "p2",
            "image": "turned.mha",
            "mask": "turned-mask.mha",
            "malignancy": "3",
        },
    ]


def run(folder, rows, out="set", workers=1, strict=False, **how):
    plan = plan_ct(write_table(folder / "cases.csv", rows), schema=SCHEMA, **how)
    return prepare(plan, CUT, folder / out if out else None, workers=workers, strict=strict)


def everything(folder):
    return b"".join(
        path.read_bytes() + path.name.encode() for path in sorted(folder.rglob("*")) if path.is_file()
    )


def test_every_way_to_say_where_finds_the_nodule(folder):
    outcome = run(folder, rows_of(folder))
    data = outcome.dataset
    assert (outcome.cases, outcome.excluded) == (5, ())
    assert (data.core, data.margin, data.patches.shape) == ((24, 24, 24), 4, (5, 32, 32, 32))
    rows = {case.id: row for row, case in enumerate(data.cases)}
    for name, row in rows.items():
        case = data.cases[row]
        assert case.centre_mm == pytest.approx(BALL.centre_mm, abs=0.15)
        patch = data.patches[row].astype(float)
        bright = np.argwhere(patch > -400)
        assert bright.mean(axis=0) == pytest.approx([15.5] * 3, abs=0.25)  # in the middle, wherever that is
        assert len(bright) == pytest.approx(math.pi / 6 * 12**3, rel=0.06)  # a voxel is one cubic millimetre
        assert case.scan == data.cases[rows["lps"]].scan or name == "turned"
    for name in ("mask", "turned"):
        mask = data.masks[rows[name]]
        assert (mask == (data.patches[rows[name]] > -400)).mean() > 0.985
        assert data.cases[rows[name]].diameter_mm == pytest.approx(12, abs=0.3)
        assert data.cases[rows[name]].labels["size"] == (0.0, 0.0, 1.0, 0.0, 0.0)
    assert data.cases[rows["lps"]].labels["size"] is None
    assert data.cases[rows["lps"]].flags == ("no mask",)
    assert not data.masks[rows["lps"]].any()


def test_grades_become_labels_and_a_blank_stays_one(folder):
    cases = {case.id: case for case in run(folder, rows_of(folder)).dataset.cases}
    assert cases["lps"].labels["malignancy"] == (0.0, 1.0, 0.0)
    assert cases["voxel"].labels["malignancy"] is None
    assert cases["turned"].labels["margin"] is None
    assert cases["turned"].labels["malignancy"] == (0.0, 0.0, 1.0)
    assert cases["lps"].readings[0]["margin"] == "sharp"


def test_several_readers_in_a_table_of_their_own(folder):
    said = [
        ("mask", "A", "sharp", "1"),
        ("mask", "B", "poor", "1"),
        ("mask", "C", "poor", "3"),
        ("ghost", "A", "poor", "1"),
    ]
    readings = write_table(
        folder / "readings.csv",
        [dict(zip(("case", "reader", "margin", "malignancy"), row, strict=True)) for row in said],
        ("case", "reader", "margin", "malignancy"),
    )
    outcome = run(folder, rows_of(folder)[2:4], readings=readings, consensus=Consensus(rule="distribution"))
    (case,) = outcome.dataset.cases
    assert case.labels["margin"] == pytest.approx((2 / 3, 0, 1 / 3))
    assert case.labels["malignancy"] == pytest.approx((2 / 3, 0, 1 / 3))
    assert [reading["margin"] for reading in case.readings] == ["sharp", "poor", "poor"]
    assert outcome.excluded == (
        ("ghost", "has readings, but no row in the table of cases"),
        ("voxel", "line 2: no readings"),
    )


def test_what_the_settings_leave_out_is_listed(folder):
    rows = rows_of(folder)
    outcome = run(folder, rows, consensus=Consensus(disease="binary"))
    assert [case.id for case in outcome.dataset.cases] == ["voxel", "turned"]
    assert {reason for _, reason in outcome.excluded} == {"malignancy is uncertain"}
    assert outcome.dataset.schema["malignancy"].states == ("benign", "malignant")


def test_a_series_in_several_images_is_cut_from_each(folder):
    """As collections of cut-out nodules have it: the mask of one lies outside of the image of another."""
    other = Ball((209.3, -6.2, 4.1), 8.0)
    moved = scan().affine + np.array([[0, 0, 0, 200]] + [[0] * 4] * 3)
    write_image(folder / "other.nii.gz", Volume(scan(ball=BALL).array, moved))
    write_image(folder / "other-mask.nii.gz", mask_of(Volume(scan().array, moved), other))
    first = rows_of(folder)[3] | {"series_uid": "1.2.3"}
    second = first | {"case": "other", "image": "other.nii.gz", "mask": "other-mask.nii.gz"}
    outcome = run(folder, [first, second])
    assert not outcome.excluded
    assert [(case.id, case.scan) for case in outcome.dataset.cases] == [("mask", "1.2.3"), ("other", "1.2.3")]
    assert outcome.dataset.cases[1].centre_mm == pytest.approx(other.centre_mm, abs=0.5)
    assert outcome.dataset.counts["scans"] == 1


@pytest.mark.parametrize("uids", [("", ""), ("1.2.3", ""), ("1.2.3", "1.2.3")])
def test_a_scan_has_one_patient(folder, uids):
    mine, _, _, yours, _ = rows_of(folder)
    rows = [mine | {"series_uid": uids[0]}, yours | {"patient": "p7", "series_uid": uids[1]}]
    outcome = run(folder, rows)
    assert [case.patient for case in outcome.dataset.cases] == ["p1"]
    assert outcome.excluded == (("mask", "line 3: the scan is that of another patient in line 2"),)


BAD = {
    "far": ({"x": 500, "y": 0, "z": 0, "position": "LPS mm"}, "outside of the scan"),
    "no image": ({"image": "none.nii"}, "no such image"),
    "no format": ({"image": "cases.csv"}, "neither a folder of DICOM files"),
    "damaged": ({"image": "damaged.nii.gz"}, "damaged.nii.gz"),
    "no mask": ({"mask": "none.nii.gz"}, "no such file"),
    "empty mask": ({"mask": "empty.nii.gz"}, "an empty mask"),
    "other mask": ({"mask": "turned-mask.mha"}, "away from"),
    "grade": ({"malignancy": "7"}, "'7'"),
    "series": ({"image": "", "series_uid": "1.2.3"}, "--dicom"),
    "no readers": ({"patient": ""}, "no patient"),
}


@pytest.mark.parametrize("bad", BAD)
def test_one_bad_row_costs_itself_alone_and_strict_stops(folder, bad):
    change, reason = BAD[bad]
    (folder / "damaged.nii.gz").write_bytes(b"\x1f\x8b" + bytes(100))
    write_image(folder / "empty.nii.gz", Volume(np.zeros((30, 64, 60), np.uint8), scan().affine))
    good = rows_of(folder)[3]
    rows = [good, good | {"case": "Doe's", "mask": "", "x": 0, "y": 0, "z": 0, "position": "voxel"} | change]
    tried = run(folder, rows, out=None)
    outcome = run(folder, rows)
    assert tried.excluded == outcome.excluded
    assert tried.cases == outcome.cases == 1
    ((name, said),) = outcome.excluded
    assert name == "Doe's"
    assert reason in said
    assert b".nii" not in everything(folder / "set")
    with pytest.raises(InputError) as error:
        run(folder, rows, out="strict", strict=True)
    assert reason in str(error.value)


def test_trying_writes_nothing(folder):
    before = sorted(folder.rglob("*"))
    rows = rows_of(folder)
    plan = plan_ct(write_table(folder / "cases.csv", rows), schema=SCHEMA)
    assert prepare(plan, CUT, None).cases == 5
    assert sorted(folder.rglob("*")) == sorted([*before, folder / "cases.csv"])


def test_names_of_files_do_not_enter_the_dataset(folder):
    run(folder, rows_of(folder))
    assert b"Doe" not in everything(folder / "set")
    assert str(folder).encode() not in everything(folder / "set")


def test_any_number_of_workers_writes_the_same_bytes(folder):
    rows = rows_of(folder)
    run(folder, rows, out="one")
    run(folder, rows[::-1], out="again")
    run(folder, rows, out="two", workers=2)
    for name in ("cases.jsonl", "patches.npy", "masks.npy", "dataset.json"):
        one = (folder / "one" / name).read_bytes()
        assert one == (folder / "two" / name).read_bytes()
        if name == "patches.npy":
            assert sorted(np.load(folder / "again" / name).sum((1, 2, 3))) == sorted(
                np.load(folder / "one" / name).sum((1, 2, 3))
            )


def test_series_are_found_by_their_uid(folder):
    uid = write_series(folder / "dicom", scan(), untidy=Untidy(scout=True, text_file=True))
    other = write_series(folder / "dicom", scan(ball=Ball((0, 0, 0), 9)), seed=1)
    x, y, z = BALL.centre_mm
    at = {"patient": "p1", "x": x, "y": y, "z": z, "position": "LPS mm", "margin": "poor", "malignancy": "1"}
    rows = [
        at | {"case": "by uid", "series_uid": uid},
        at | {"case": "by folder", "image": "dicom", "series_uid": uid},
        at | {"case": "either", "image": "dicom"},
        at | {"case": "no such", "series_uid": "1.2.3"},
    ]
    outcome = run(folder, rows, dicom=folder / "dicom")
    data = outcome.dataset
    assert [case.id for case in data.cases] == ["by uid", "by folder"]
    assert {case.scan for case in data.cases} == {uid}
    assert (np.argwhere(data.patches[0] > -400).mean(axis=0)) == pytest.approx([15.5] * 3, abs=0.25)
    assert dict(outcome.excluded) == {
        "either": "line 4: 2 series of CT slices in the folder, and no series UID",
        "no such": "line 5: no such series in the folder",
    }
    assert other not in everything(folder / "set").decode("latin1")
    assert any("no CT slices" in note for note in data.notes)


def test_what_nobody_can_prepare_is_refused(folder):
    table = write_table(folder / "cases.csv", rows_of(folder))
    with pytest.raises(InputError, match="no readings and no schema"):
        plan_ct(table)
    for wrong in (
        {"size": 0},
        {"spacing_mm": 0.0},
        {"spacing_mm": math.inf},
        {"margin": -1},
        {"agreement": 0.0},
    ):
        with pytest.raises(InputError):
            Cut(**wrong)
    with pytest.raises(InputError, match="0 workers"):
        run(folder, rows_of(folder), workers=0)


def test_real_nodules(shared_data, tmp_path):
    source = shared_data / "lidc-voi"
    if not source.is_dir():
        pytest.skip("no nodules of LIDC-IDRI")
    with (source / "nodules.csv").open() as stream:
        nodules = list(csv.DictReader(stream))[:6]
    rows = [
        {
            "case": n["nodule"],
            "patient": n["patient"],
            "image": source / n["image"],
            "mask": source / n["mask"],
        }
        for n in nodules
    ]
    cases = write_table(tmp_path / "cases.csv", rows, ("case", "patient", "image", "mask"))
    with (source / "readings.csv").open() as stream:
        said = [{"case": r["nodule"], "reader": r["reading"], **r} for r in csv.DictReader(stream)]
    names = ("case", "reader", "margin", "malignancy")
    readings = write_table(
        tmp_path / "r.csv", [r for r in said if r["nodule"] in {n["nodule"] for n in nodules}], names
    )
    data = prepare(plan_ct(cases, readings, disease="malignancy"), CUT, tmp_path / "set").dataset
    by_id = {case.id: case for case in data.cases}
    assert set(by_id) == {n["nodule"] for n in nodules}
    for nodule in nodules:
        case = by_id[nodule["nodule"]]
        grades = [int(reading["malignancy"]) for reading in case.readings]
        assert len(grades) == int(nodule["readers"])
        assert np.mean(grades) == pytest.approx(float(nodule["mean_malignancy"]))
    assert np.mean([case.padding_share > 0.3 for case in data.cases]) >= 0.5  # cut short above and below
    assert Path(data.folder / "masks.npy").exists()
