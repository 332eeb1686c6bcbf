"""Planted phantoms: what is said to decide decides, and nothing else does."""

from itertools import product

import numpy as np
import pytest

from radreason.data.case import Case
from radreason.data.phantom_ct.looks import LOOKS
from radreason.data.phantom_ct.planted import Planted, plant
from radreason.errors import InputError
from radreason.schema import LIDC, Schema, Variable


def some_cases(count=4000):
    """Cases in which every grade goes with every other: the worst to start from."""
    rng = np.random.default_rng(0)
    grades = rng.choice(5, count, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    return [
        Case(f"c{i}", f"p{i}", "s", {v.name: tuple(np.eye(v.size)[min(g, v.size - 1)]) for v in LIDC})
        for i, g in enumerate(grades)
    ]


def grades_of(cases, name):
    return np.array([np.argmax(case.labels[name]) + 1 for case in cases])


def test_the_disease_is_the_mean_of_the_two_away_from_the_middle():
    for a, b in product(range(1, 6), repeat=2):
        mean, grade = (a + b) / 2, Planted.disease(a, b)
        assert abs(grade - mean) <= 0.5
        assert abs(grade - 3) >= abs(mean - 3)
        assert Planted.disease(b, a) == grade
        assert Planted.disease(6 - a, 6 - b) == 6 - grade


def test_nothing_but_the_two_has_to_do_with_the_disease():
    before = some_cases()
    cases = plant(before, LIDC, Planted("margin", "spiculation"), 0)
    truth = grades_of(cases, "malignancy")
    first, second = grades_of(cases, "margin"), grades_of(cases, "spiculation")
    assert [Planted.disease(a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True)] == list(
        truth
    )
    columns = {name: grades_of(cases, name) for name in LIDC.names if name != "malignancy"}
    ties = np.corrcoef([*columns.values()])
    assert np.abs(ties - np.eye(len(columns))).max() < 0.06
    for name, column in columns.items():
        if name not in ("margin", "spiculation"):
            assert abs(np.corrcoef(column, truth)[0, 1]) < 0.06
            np.testing.assert_array_equal(np.sort(column), np.sort(grades_of(before, name)))
    np.testing.assert_allclose(np.bincount(first, minlength=6)[1:] / len(cases), 0.2, atol=0.03)
    assert all(case.flags == ("planted",) and not case.readings for case in cases)


def test_planting_depends_on_the_seed_only():
    cases, pair = some_cases(50), Planted("texture", "lobulation")
    assert plant(cases, LIDC, pair, 3) == plant(cases, LIDC, pair, 3)
    assert plant(cases, LIDC, pair, 3) != plant(cases, LIDC, pair, 4)


@pytest.mark.parametrize(
    "pair", [("malignancy", "margin"), ("calcification", "margin"), ("margin", "margin")]
)
def test_only_two_attributes_with_a_look_can_be_planted(pair):
    with pytest.raises(InputError):
        Planted(*pair)


def test_a_schema_with_other_grades_is_refused():
    two = Schema((*LIDC.variables[:-1], Variable("malignancy", ("benign", "malignant"))), "malignancy")
    with pytest.raises(InputError, match="five grades of malignancy"):
        plant(some_cases(3), two, Planted("margin", "texture"), 0)


def test_every_attribute_with_a_look_is_a_grade_of_the_readers():
    assert {*LOOKS} == {v.name for v in LIDC if v.ordered and v.name != "malignancy"}
