"""Cases from readings: each setting on a nodule whose answer is known, and real nodules by another way."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from radreason import InputError
from radreason.data.case import Case
from radreason.data.consensus import PAPER, Consensus, Excluded, case_id
from radreason.data.grouping import Nodule
from radreason.data.reading import NoduleReading, Outline, Scan
from radreason.schema import LIDC, Schema, Variable

SCAN = Scan("1.2.34567", "P-1", None, 1.0, 2.5, 2.0, False)  # slices overlap: 2.5 mm thick, 2 mm apart


def box(side, z_mm=0.0):
    """An outline with side x side pixels inside."""
    corners = [[0, 0], [side + 1, 0], [side + 1, side + 1], [0, side + 1]]
    return Outline(z_mm, np.array(corners, float))


def nodule(*grades, scan=SCAN, outlines=(), **other):
    """Each reader's grades as {variable: grade}; others missing."""
    readings = [
        NoduleReading(scan.series_uid, None, str(i), {k: str(v) for k, v in own.items()}, drawn)
        for i, (own, drawn) in enumerate(zip(grades, outlines or [()] * len(grades), strict=True))
    ]
    return Nodule(scan, 7, tuple(readings), **other)


def label(case, name):
    return None if case.labels[name] is None else list(case.labels[name])


def test_a_case_has_what_was_said_and_no_more():
    case = Consensus("median").case(
        nodule({"margin": 2, "malignancy": 4}, {"margin": 4, "malignancy": 5}), LIDC
    )
    case.check(Consensus("median").schema(LIDC))
    assert (case.id, case.patient, case.scan) == ("P-1-34567-7", "P-1", "1.2.34567")
    assert label(case, "margin") == [0, 0, 1, 0, 0]
    assert label(case, "malignancy") == [0, 0, 0, 0, 1]
    assert all(case.labels[name] is None for name in (*LIDC.names[:4], "lobulation", "size"))
    assert [said["malignancy"] for said in case.readings] == ["4", "5"]
    assert case.diameter_mm is None
    assert case.extra == {"readers": 2}


def test_benign_and_malignant():
    def of(rule, *grades):
        case = Consensus(rule, "binary").case(nodule(*[{"malignancy": g} for g in grades]), LIDC)
        return case.reason if isinstance(case, Excluded) else label(case, "malignancy")

    assert of("mean", 2, 3, 3) == [1, 0]
    assert of("median", 2, 3, 3) == of("majority", 2, 4) == of("mean", 1, 5) == "malignancy is uncertain"
    assert of("median", 3, 4) == [0, 1]
    assert of("distribution", 1, 4, 5, 5) == [0.25, 0.75]
    assert of("distribution", 3, 3, 3, 4) == [0.375, 0.625]
    assert of("distribution", 3, 3, 3) == of("distribution", 1, 2, 3, 4, 4) == "malignancy is uncertain"
    settings = Consensus("mean", "binary")
    case = settings.case(nodule({"malignancy": 3}, {"malignancy": 5}, {}), LIDC)
    case.check(settings.schema(LIDC))
    said = [(reading["malignancy"], reading["malignancy as graded"]) for reading in case.readings]
    assert said == [(None, "3"), ("malignant", "5"), (None, None)]
    assert settings.schema(LIDC)["malignancy"].states == ("benign", "malignant")
    assert settings.case(nodule({"margin": 1}), LIDC).labels["malignancy"] is None


def test_two_states_have_no_middle():
    flu = Schema((Variable("flu", ("no", "yes")),), "flu")
    with pytest.raises(InputError, match="flu: no, yes"):
        Consensus(disease="binary").schema(flu)
    assert Consensus().schema(flu).names == ("flu", "size")


@pytest.mark.parametrize("state", range(1, 7))
def test_scaling_to_five(state):
    settings = Consensus("mean", scale_to_five=True)
    case = settings.case(nodule({"calcification": state}), LIDC)
    case.check(settings.schema(LIDC))
    nearest = min(range(1, 6), key=lambda five: abs(five - (1 + (state - 1) * 4 / 5)))
    assert case.labels["calcification"].index(1) + 1 == nearest
    assert case.readings[0]["calcification"] == str(nearest)
    assert case.readings[0]["calcification as graded"] == str(state)
    assert settings.schema(LIDC)["calcification"].ordered


def test_scaled_grades_are_averaged_before_they_are_rounded():
    graded = [{"internalStructure": state} for state in (1, 2, 2)]  # 1, 2 1/3, 2 1/3: 1.89
    assert label(Consensus("mean", scale_to_five=True).case(nodule(*graded), LIDC), "internalStructure") == [
        0, 1, 0, 0, 0,
    ]  # fmt: skip
    kept = Consensus("mean").case(nodule(*graded), LIDC)
    assert label(kept, "internalStructure") == [0, 1, 0, 0]


def test_size():
    """16 and 100 pixels of 1 x 1 x 2 mm on two slices: balls of 5.0 and 9.1 mm."""
    drawn = [(box(4), box(4, 2.0)), (box(10), box(10, 2.0)), ()]
    diameters = [(6 * pixels * 2 * 2 / np.pi) ** (1 / 3) for pixels in (16, 100)]
    grades = [{"malignancy": 2}] * 3
    case = Consensus("mean").case(nodule(*grades, outlines=drawn), LIDC)
    assert case.diameter_mm == pytest.approx(sum(diameters) / 2)
    assert label(case, "size") == [0, 1, 0, 0, 0]
    assert [said["size"] for said in case.readings] == ["<6", "8-15", None]
    assert case.extra["diameter_min_mm"], case.extra["diameter_max_mm"] == pytest.approx(diameters)
    assert case.extra["readers"] == 3
    soft = Consensus("distribution").case(nodule(*grades, outlines=drawn), LIDC)
    assert label(soft, "size") == [0.5, 0, 0.5, 0, 0]
    without = Consensus("mean", size=False)
    assert "size" not in without.schema(LIDC)
    case = without.case(nodule(*grades, outlines=drawn), LIDC)
    assert "size" not in case.labels
    assert "size" not in case.readings[0]
    assert case.diameter_mm == pytest.approx(sum(diameters) / 2)  # still known, only not an attribute
    unknown = Consensus().case(nodule(*grades, outlines=drawn, scan=Scan("1.2.34567")), LIDC)
    assert unknown.labels["size"] is None


def test_the_median_of_sizes():
    drawn = [(box(4),), (box(5),), (box(30),)]
    case = Consensus("median").case(nodule({}, {}, {}, outlines=drawn), LIDC)
    assert case.diameter_mm == pytest.approx((6 * 25 * 2 / np.pi) ** (1 / 3))


def test_who_is_kept_out():
    thick = Scan("1", "P", None, 0.7, 5.0, 5.0, True)
    limits = Consensus(thickest_slice_mm=3.0)
    assert limits.case(nodule({"margin": 1}, scan=thick), LIDC) == Excluded(
        "P-1-7", "slices thicker than 3 mm"
    )
    for thickness_mm in (None, 3.0):
        scan = Scan("1", slice_thickness_mm=thickness_mm)
        assert isinstance(limits.case(nodule({"margin": 1}, scan=scan), LIDC), Case)
    assert Consensus(fewest_readers=2).case(nodule({}), LIDC).reason == "fewer than 2 readers"
    assert isinstance(Consensus(fewest_readers=2).case(nodule({}, {}), LIDC), Case)
    same = [NoduleReading("1", "r1", name, {}) for name in "ab"]
    assert (
        Consensus(fewest_readers=2).case(Nodule(SCAN, 1, tuple(same)), LIDC).reason == "fewer than 2 readers"
    )
    said = {"lobulation": 1, "spiculation": 2, "margin": 3}
    assert (
        Consensus(initial="exclude").case(nodule(said, scan=thick), LIDC).reason == "one of the initial scans"
    )
    kept, masked = (
        Consensus(initial=initial).case(nodule(said, scan=thick), LIDC) for initial in ("keep", "mask")
    )
    assert kept.flags == masked.flags == ("initial",)
    assert kept.labels | {"lobulation": None, "spiculation": None} == masked.labels
    assert kept.labels["spiculation"] is not None
    assert Consensus().case(nodule(said, crowded=True), LIDC).flags == ("crowded",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": "mode"},
        {"disease": "yes"},
        {"initial": "drop"},
        {"fewest_readers": 0},
        {"thickest_slice_mm": -1.0},
        {"thickest_slice_mm": "3"},
        {"size": "no"},
    ],
)
def test_settings_are_checked_and_kept(wrong):
    assert Consensus.from_dict(PAPER.to_dict()) == PAPER
    assert Consensus.from_dict({}) == Consensus()
    with pytest.raises(InputError):
        Consensus.from_dict(wrong)
    with pytest.raises(InputError, match="unknown setting of a consensus 'rules'"):
        Consensus.from_dict({"rules": "mean"})


def test_real_nodules_by_the_statistics_module(lidc, grouped):
    ids = {case_id(nodule) for nodule in grouped.nodules}
    assert len(ids) == len(grouped.nodules)
    schema = lidc.schema.subset(["calcification", "malignancy"])
    sample = grouped.nodules[::7]
    for rule, value in (("mean", statistics.mean), ("median", statistics.median)):
        settings = Consensus(rule, "binary", size=False)
        for nodule in sample:
            made = settings.case(nodule, schema)
            said = [(int(r.grades["calcification"]), int(r.grades["malignancy"])) for r in nodule.readings]
            calcified, malignancy = zip(*said, strict=True)
            if value(malignancy) == 3:
                assert made == Excluded(case_id(nodule), "malignancy is uncertain")
                continue
            made.check(settings.schema(schema))
            assert label(made, "malignancy") == ([1, 0] if value(malignancy) < 3 else [0, 1])
            most = min(statistics.multimode(calcified))
            assert label(made, "calcification") == [float(state == most) for state in range(1, 7)]
