"""Phantoms from end to end: what was planted is found again, through DICOM and readings in XML."""

from __future__ import annotations

import numpy as np
import pytest

from radreason.data.dicom import find_series, read_series
from radreason.data.lidc_xml import read_lidc_xml
from radreason.data.outline_mask import agreement, centre_of_outlines_mm
from radreason.data.patch import cut_mask, cut_patch
from radreason.data.reading import NoduleReading
from radreason.data.synthetic import (
    LUNG_HU,
    NODULE_HU,
    Ball,
    outlines_of,
    phantom_scan,
    write_lidc_xml,
    write_series,
)
from radreason.schema import LIDC

BALLS = (Ball((6.3, -4.2, 5.1), 11), Ball((-9.0, 7.7, -12.4), 6))
GRADES = dict(zip(LIDC.names, "413333215", strict=True))


def readings_of(uid, scan):
    return [
        NoduleReading(
            uid, f"reader {r}", f"nodule {n}", {**GRADES, "malignancy": str(n + r)}, outlines_of(ball, scan)
        )
        for r in (1, 2, 3)
        for n, ball in enumerate(BALLS)
    ]


def test_a_ball_is_what_it_says():
    scan = phantom_scan(BALLS, noise_hu=10)
    index = np.stack(np.meshgrid(*map(np.arange, scan.shape), indexing="ij"), -1)
    for ball in BALLS:
        away = np.linalg.norm(scan.to_mm(index) - ball.centre_mm, axis=-1)
        assert scan.array[away < ball.diameter_mm / 2 - 0.5].mean() == pytest.approx(NODULE_HU, abs=3)
    assert np.median(scan.array) == pytest.approx(LUNG_HU, abs=1)
    assert np.array_equal(scan.array, phantom_scan(BALLS, noise_hu=10).array)
    assert not np.array_equal(scan.array, phantom_scan(BALLS, noise_hu=10, seed=1).array)


def test_what_was_planted_is_found_again(tmp_path):
    scan = phantom_scan(BALLS, noise_hu=20)
    uid = write_series(tmp_path / "dicom", scan)
    planted = readings_of(uid, scan)
    (tmp_path / "xml").mkdir()
    write_lidc_xml(tmp_path / "xml/1.xml", planted)
    readings = read_lidc_xml(tmp_path / "xml")
    assert len(readings.nodules) == len(planted)
    volume = read_series(tmp_path / "dicom", uid)
    for n, ball in enumerate(BALLS):
        drawn = [reading for reading in readings.nodules if reading.nodule.endswith(f"nodule {n}")]
        assert [reading.grades["malignancy"] for reading in drawn] == [str(n + r) for r in (1, 2, 3)]
        centre = centre_of_outlines_mm(volume, drawn[0].outlines)
        assert centre == pytest.approx(ball.centre_mm, abs=0.7)
        patch = cut_patch(volume, centre, 24)
        mask = cut_mask(agreement(volume, [reading.outlines for reading in drawn]), patch)
        assert patch.array[mask > 0].mean() > -200
        assert np.median(patch.array[mask == 0]) < -800
        assert np.cbrt(6 / np.pi * mask.sum()) == pytest.approx(ball.diameter_mm, rel=0.1)


def test_the_same_seed_is_the_same_files(tmp_path):
    scan = phantom_scan(BALLS[:1], (4, 16, 16))
    for name in "ab":
        write_series(tmp_path / name, scan)
    assert [p.read_bytes() for p in sorted((tmp_path / "a").iterdir())] == [
        p.read_bytes() for p in sorted((tmp_path / "b").iterdir())
    ]
    assert next(iter(find_series(tmp_path / "a").ct)).patient == "PHANTOM-1"
