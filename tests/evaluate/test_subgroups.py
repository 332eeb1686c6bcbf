"""Parts of cases and their figures against loops over the cases, written anew."""

import math

import numpy as np
import pytest

from radreason import Schema, Variable
from radreason.data.case import Case
from radreason.evaluate.subgroups import Part, parts, score

SCHEMA = Schema((Variable("margin", ("1", "2")), Variable("cancer", ("no", "yes"))), "cancer")
RNG = np.random.default_rng(7)


def case(number):
    said = ["yes", "yes", "no", None][: 1 + number % 4]
    if number % 3 == 0:
        said = ["yes"] * len(said)
    extra = {
        "site": ("Bern", "Graz", "Oslo")[number % 3],
        "gender": ("f", "m", None)[number % 3],
        "age": (35.0, 59.0, 60.0, "81", "unknown")[number % 5],
        "series": f"a name of its own {number}",
        "dose": 1.5 * number,
        "reader": "anonymous",
    }
    return Case(
        f"c{number}",
        f"p{number // 2}",
        "s",
        {"cancer": (0.0, 1.0) if number % 2 else (1.0, 0.0)},
        tuple({"cancer": state} for state in said),
        diameter_mm=(4.0, 7.0, 12.0, 25.0, None)[number % 5],
        flags=("initial",) if number % 4 == 1 else (),
        extra=extra,
    )


CASES = [case(number) for number in range(60)]


def listed():
    return {(part.by, part.name): part.rows.tolist() for part in parts(CASES, SCHEMA)}


def rows(holds):
    return [number for number, c in enumerate(CASES) if holds(c)]


def test_parts_are_those_of_a_loop_over_the_cases():
    found = listed()
    assert found["size", "<6"] == rows(lambda c: c.diameter_mm is not None and c.diameter_mm < 6)
    assert found["size", ">20"] == rows(lambda c: c.diameter_mm == 25.0)
    assert found["site", "Graz"] == rows(lambda c: c.extra["site"] == "Graz")
    assert found["sex", "m"] == rows(lambda c: c.extra["gender"] == "m")
    assert found["age", "under 40"] == rows(lambda c: c.extra["age"] == 35.0)
    assert found["age", "40 to 60"] == rows(lambda c: c.extra["age"] == 59.0)
    assert found["age", "60 to 75"] == rows(lambda c: c.extra["age"] == 60.0)
    assert found["age", "75 and over"] == rows(lambda c: c.extra["age"] == "81")
    assert found["flag 'initial'", "yes"] == rows(lambda c: "initial" in c.flags)
    assert found["number of readers", "3"] == rows(lambda c: len(c.readings) == 3)
    one = rows(lambda c: len(c.readings) > 1 and all(r["cancer"] == "yes" for r in c.readings))
    several = rows(lambda c: len(c.readings) > 1 and len({r["cancer"] for r in c.readings}) > 1)
    assert found["readers", "all of one opinion"] == one
    assert found["readers", "of several opinions"] == several
    assert {by for by, _ in found} == {
        "size", "readers", "number of readers", "site", "sex", "age", "flag 'initial'",
    }  # fmt: skip


def test_figures_are_those_of_loops():
    truth = np.array([c.labels["cancer"].index(1.0) for c in CASES])
    truth[[3, 8]] = -1
    positive = np.round(RNG.random(60) * 0.5 + 0.3 * (truth == 1), 2)
    beliefs = np.stack([1 - positive, positive], axis=1)
    patients = [c.patient for c in CASES]
    for part in parts(CASES, SCHEMA):
        mine = [row for row in part.rows if truth[row] >= 0]
        sick = [positive[row] for row in mine if truth[row] == 1]
        well = [positive[row] for row in mine if truth[row] == 0]
        wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in sick for b in well]
        found = score(part, beliefs, truth, patients, resamples=50)
        assert (found.cases, found.positive) == (len(mine), len(sick))
        assert found.patients == len({patients[row] for row in mine})
        if wins:
            assert found.auc.value == pytest.approx(sum(wins) / len(wins))
            assert found.sensitivity == pytest.approx(sum(p >= 0.5 for p in sick) / len(sick))
            assert found.specificity == pytest.approx(sum(p < 0.5 for p in well) / len(well))
        right = [(positive[row] > 0.5) == (truth[row] == 1) for row in mine]
        assert found.accuracy.value == pytest.approx(sum(right) / len(right))
        assert found.brier == pytest.approx(np.mean([2 * (positive[row] - truth[row]) ** 2 for row in mine]))
        assert found.few == (len(mine) < 30 or min(len(sick), len(well)) < 10)


def test_intervals_hold_the_value_and_resample_patients():
    truth = np.array([c.labels["cancer"].index(1.0) for c in CASES])
    beliefs = np.where(truth[:, None] == [0, 1], 0.6, 0.4)
    whole = Part("all", "all", np.arange(60))
    alone = score(whole, beliefs, truth, ["one patient"] * 60, resamples=50)
    assert math.isnan(alone.auc.low)
    assert alone.auc.value == 1.0
    several = score(whole, beliefs, truth, [c.patient for c in CASES], resamples=50)
    assert several.accuracy.low <= several.accuracy.value <= several.accuracy.high


def test_a_part_without_a_case_that_is_known_says_nothing():
    truth = np.full(60, -1)
    found = score(Part("by", "part", np.arange(5)), np.full((60, 2), 0.5), truth, ["p"] * 60)
    assert found.cases == 0
    assert math.isnan(found.auc.value)
    assert found.few
