"""LIDC-IDRI in small: made-up series and readings in its own XML, through the whole way to a dataset."""

from __future__ import annotations

import numpy as np
import pytest

from radreason import InputError
from radreason.data.consensus import Consensus
from radreason.data.cut_ct import Cut
from radreason.data.lidc_xml import read_lidc_xml
from radreason.data.prepare import prepare
from radreason.data.prepare_lidc import plan_lidc
from radreason.data.reading import NoduleReading
from radreason.data.synthetic import Ball, Untidy, outlines_of, phantom_scan, write_lidc_xml, write_series
from radreason.schema import LIDC

BALLS = (Ball((-11.0, 4.0, 2.0), 9.0), Ball((12.0, -7.0, -8.0), 14.0))
CUT = Cut(size=24, margin=4)


def graded(malignancy):
    return dict(zip(LIDC.names, ("4", "1", "6", "4", "5", "2", "1", "5", str(malignancy)), strict=True))


def add_scan(folder, patient, seed, grades, untidy=None):
    """Write a scan of two balls; ``grades`` are the malignancies that each reader gives to each ball."""
    scan = phantom_scan(BALLS, seed=seed)
    uid = write_series(folder / "dicom" / patient, scan, patient, seed=seed, untidy=untidy or Untidy())
    readings = [
        NoduleReading(uid, f"r{reader}", f"n{reader}{ball}", graded(grade), outlines_of(BALLS[ball], scan))
        for reader, given in enumerate(grades)
        for ball, grade in enumerate(given)
        if grade
    ]
    (folder / "xml").mkdir(exist_ok=True)
    write_lidc_xml(folder / "xml" / f"{patient}.xml", readings)
    return uid


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lidc")
    uids = [
        add_scan(folder, "LIDC-IDRI-0007", 0, [(1, 5), (2, 4), (1, 0)], Untidy(scout=True)),
        add_scan(folder, "LIDC-IDRI-0003", 1, [(3, 3)]),
        add_scan(folder, "Doe^Jane^1950", 2, [(5, 2), (5, 2)], Untidy(scout=True)),
        add_scan(folder, "Roe^John^1960", 3, [(5, 2), (5, 2)], Untidy(missing=(20,))),
    ]
    unread = write_series(folder / "dicom" / "more", phantom_scan(()), "LIDC-IDRI-0009", seed=9)
    elsewhere = phantom_scan(BALLS)
    write_lidc_xml(
        folder / "xml" / "elsewhere.xml",
        [NoduleReading("1.2.3", "r", "n", graded(4), outlines_of(BALLS[0], elsewhere))],
    )
    plan = plan_lidc(folder / "dicom", read_lidc_xml(folder / "xml"), "made up", Consensus())
    return folder, uids, unread, prepare(plan, CUT, folder / "set")


def test_nodules_are_where_they_were_put_and_graded_as_they_were(made):
    _, uids, _, outcome = made
    data = outcome.dataset
    found = {(case.scan, round(case.centre_mm[0])): row for row, case in enumerate(data.cases)}
    assert set(found) == {(uid, x) for uid in uids[:3] for x in (-11, 12)}
    means = {uids[0]: (4 / 3, 4.5), uids[1]: (3, 3), uids[2]: (5, 2)}
    for uid, expected in means.items():
        for ball, mean in zip(BALLS, expected, strict=True):
            row = found[uid, round(ball.centre_mm[0])]
            case = data.cases[row]
            assert case.centre_mm == pytest.approx(ball.centre_mm, abs=0.6)
            assert case.diameter_mm == pytest.approx(ball.diameter_mm, abs=0.8)
            grades = [int(reading["malignancy"]) for reading in case.readings]
            assert np.mean(grades) == pytest.approx(mean)
            bright = data.patches[row] > -400
            assert np.argwhere(bright).mean(axis=0) == pytest.approx([15.5] * 3, abs=0.7)
            mask = data.masks[row] > 0
            assert 2 * (mask & bright).sum() / (mask.sum() + bright.sum()) > 0.85
            assert case.padding_share == 0


def test_cases_come_patient_by_patient(made):
    patients = [case.patient for case in made[3].dataset.cases]
    assert patients == sorted(patients)
    assert {"LIDC-IDRI-0003", "LIDC-IDRI-0007"} < set(patients)


def test_who_a_patient_is_enters_nothing(made):
    folder, _, _, outcome = made
    written = b"".join(path.read_bytes() for path in (folder / "set").iterdir())
    for word in (b"Doe", b"Roe", b"1950", str(folder).encode()):
        assert word not in written
    assert len({case.patient for case in outcome.dataset.cases}) == 3


def test_what_is_missing_is_listed(made):
    _, uids, unread, outcome = made
    data = outcome.dataset
    said = {entry["case"]: entry["reason"] for entry in data.excluded}
    assert said["series 1.2.3, 1 reading"] == "not among the images"
    assert "missing" in said[f"series {uids[3]}, 4 readings"]
    assert len(said) == 2
    assert any("Roe" in reason for _, reason in outcome.excluded)  # whoever runs it is told which files
    assert any(unread in note for note in data.notes)
    assert any(note.startswith(f"{uids[0]}: left out, no CT slices") for note in data.notes)


def test_settings_decide_what_is_a_case(made):
    folder = made[0]
    read = read_lidc_xml(folder / "xml")
    outcome = prepare(
        plan_lidc(folder / "dicom", read, "made up", Consensus(fewest_readers=2, disease="binary")), CUT, None
    )
    assert outcome.cases == 4
    assert sum(reason == "fewer than 2 readers" for _, reason in outcome.excluded) == 2
    thin = Consensus(thickest_slice_mm=1.0)
    with pytest.raises(InputError, match="slices thicker than 1 mm"):
        prepare(plan_lidc(folder / "dicom", read, "made up", thin), CUT, folder / "thin")


def test_readings_of_other_scans_are_refused(made, tmp_path):
    folder = made[0]
    write_series(tmp_path / "dicom", phantom_scan(BALLS), "LIDC-IDRI-0001", seed=77)
    with pytest.raises(InputError, match="none of its 1 series"):
        plan_lidc(tmp_path / "dicom", read_lidc_xml(folder / "xml"), "made up", Consensus())
