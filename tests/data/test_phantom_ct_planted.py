"""Planted phantoms: what is said to decide decides, and nothing else does."""

from itertools import product

import numpy as np
import pytest

from radreason.data.case import Case
from radreason.data.phantom_ct.looks import LOOKS
from radreason.data.phantom_ct.model import Model
from radreason.data.phantom_ct.planted import Planted, plant
from radreason.errors import InputError
from radreason.schema import LIDC, Schema, Variable


def some_models(count=1500):
    """Cases in which every grade goes with every other: the worst to start from."""
    rng = np.random.default_rng(0)
    grades = rng.choice(5, count, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    models = []
    for i, g in enumerate(grades):
        labels = {v.name: tuple(np.eye(v.size)[min(g, v.size - 1)].tolist()) for v in LIDC}
        models.append(Model(Case(f"c{i}", f"p{i}", "s", labels), labels, (), 0.7, 2.0, 6.0))
    return models


def grades_of(models, name):
    for model in models:
        assert model.shown[name] == model.case.labels[name]
    return np.array([model.case.labels[name].index(1) + 1 for model in models])


def test_the_disease_is_the_mean_of_the_two_away_from_the_middle():
    for a, b in product(range(1, 6), repeat=2):
        mean, grade = (a + b) / 2, Planted.disease(a, b)
        assert abs(grade - mean) <= 0.5
        assert abs(grade - 3) >= abs(mean - 3)
        assert Planted.disease(b, a) == grade
        assert Planted.disease(6 - a, 6 - b) == 6 - grade


def test_nothing_but_the_two_has_to_do_with_the_disease():
    before = some_models()
    models = plant(before, LIDC, Planted("margin", "spiculation"), 0)
    truth = grades_of(models, "malignancy")
    first, second = grades_of(models, "margin"), grades_of(models, "spiculation")
    assert [Planted.disease(a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True)] == list(
        truth
    )
    columns = {name: grades_of(models, name) for name in LIDC.names if name != "malignancy"}
    ties = np.corrcoef([*columns.values()])
    assert np.abs(ties - np.eye(len(columns))).max() < 0.1
    for name, column in columns.items():
        if name not in ("margin", "spiculation"):
            assert abs(np.corrcoef(column, truth)[0, 1]) < 0.1
            np.testing.assert_array_equal(np.sort(column), np.sort(grades_of(before, name)))
    np.testing.assert_allclose(np.bincount(first, minlength=6)[1:] / len(models), 0.2, atol=0.04)
    assert all(model.case.flags == ("planted",) and not model.case.readings for model in models)


def test_planting_depends_on_the_seed_only():
    models, pair = some_models(50), Planted("texture", "lobulation")
    one, same, other = ([m.case for m in plant(models, LIDC, pair, seed)] for seed in (3, 3, 4))
    assert one == same
    assert one != other


@pytest.mark.parametrize(
    "pair", [("malignancy", "margin"), ("calcification", "margin"), ("margin", "margin")]
)
def test_only_two_attributes_with_a_look_can_be_planted(pair):
    with pytest.raises(InputError):
        Planted(*pair)


def test_a_schema_with_other_grades_is_refused():
    two = Schema((*LIDC.variables[:-1], Variable("malignancy", ("benign", "malignant"))), "malignancy")
    with pytest.raises(InputError, match="five grades of malignancy"):
        plant(some_models(3), two, Planted("margin", "texture"), 0)


def test_every_attribute_with_a_look_is_a_grade_of_the_readers():
    assert {*LOOKS} == {v.name for v in LIDC if v.ordered and v.name != "malignancy"}
