"""The rival regression: what it is told, and in which order it asks."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from radreason.explain.grade_regression import GradeRegression, greedy_order


@pytest.fixture(scope="module")
def rows(truth):
    rng = np.random.default_rng(8)
    score = np.log(rng.dirichlet(np.ones(2), size=400))
    return score, {n: c for n, c in truth.items() if n != "cancer"}, truth["cancer"], rng.random(400)


def test_it_is_scikit_learns_on_scaled_positions_and_indicators(schema, rows):
    score, grades, true, weight = rows
    fitted = GradeRegression.fit(schema, ("texture", "calcification"), score, grades, true, weight)
    kind = grades["calcification"]
    table = np.stack([score[:, 1] - score[:, 0], grades["texture"], kind == 1, kind == 2], axis=1)
    witness = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    witness.fit(table, true, logisticregression__sample_weight=weight)
    assert np.allclose(fitted(score, grades), witness.predict_proba(table), atol=1e-4)


def test_a_missing_grade_counts_as_the_average(schema, rows):
    score, grades, true, weight = rows
    fitted = GradeRegression.fit(schema, ("texture",), score, grades, true, weight)
    silent = fitted(score[:1], {"texture": np.array([-1])})
    told = np.array([fitted(score[:1], {"texture": np.array([c])})[0, 1] for c in range(4)])
    slope = np.log(told / (1 - told))
    mean = grades["texture"].mean()
    assert np.log(silent[0, 1] / silent[0, 0]) == pytest.approx(slope[0] + mean * (slope[1] - slope[0]))


def test_it_asks_what_tells_most_first_and_what_tells_nothing_last(schema, rows):
    score, grades, true, weight = rows
    names = ("texture", "margin", "calcification", "spiculation")
    order = greedy_order(schema, names, score, grades, true, weight, np.arange(400) // 2)
    assert order[0] == "spiculation"
    assert order[1] == "calcification"
    assert sorted(order) == sorted(names)
